"""A user's own points with their classes, as experiments read them from a file of arrays."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

MIN_POINTS = 16


def labelled_points(data: Mapping[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Rows ``x`` (points, features), standardised, and classes ``y`` as whole numbers from 0."""
    x, y = (np.asarray(data.get(name, np.zeros(0))) for name in ("x", "y"))
    if x.ndim != 2 or y.shape != x.shape[:1] or len(x) < MIN_POINTS or not np.isfinite(x).all():
        raise ScenarioError(
            f"data: got x {x.shape} and y {y.shape}; write an .npz with finite x (points, features) and y (points), "
            f"{MIN_POINTS} points or more."
        )
    rows = (x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)
    return rows.astype(np.float64), np.unique(y, return_inverse=True)[1].astype(np.int64)
