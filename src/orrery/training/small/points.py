"""A user's own points as a data set: rows and classes, cut into parts to train on, to stop by, and to test on."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.training.small.data import Dataset, Split

MIN_POINTS = 16


def points_of(data: Mapping[str, Any], seed: int) -> Dataset:
    """Rows ``x`` (points, features), standardised, and classes ``y``: half to train on, a quarter each for the rest."""
    x, y = (np.asarray(data.get(name, np.zeros(0))) for name in ("x", "y"))
    if x.ndim != 2 or y.shape != x.shape[:1] or len(x) < MIN_POINTS or not np.isfinite(x).all():
        raise ScenarioError(
            f"data: got x {x.shape} and y {y.shape}; write an .npz with finite x (points, features) and y (points), "
            f"{MIN_POINTS} points or more."
        )
    labels = np.unique(y, return_inverse=True)[1].astype(np.int64)
    rows = ((x - x.mean(axis=0)) / np.maximum(x.std(axis=0), 1e-12)).astype(np.float64)
    order = stream(seed, "experiment/data").permutation(len(rows))
    parts = np.split(order, [len(rows) // 2, 3 * len(rows) // 4])
    train, validation, test = (Split(rows=rows[part], labels=labels[part]) for part in parts)
    return Dataset(train=train, validation=validation, test=test, num_classes=int(labels.max()) + 1)
