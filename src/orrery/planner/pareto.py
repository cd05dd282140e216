"""The Pareto front: what no other choice beats on both counts at once."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def front(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Indices of the points that no other point reaches in both ``x`` and ``y`` (more is better), by falling ``x``.

    Of equal points the first stands for all.
    """
    order = np.lexsort((np.arange(x.size), -y, -x))
    best = np.maximum.accumulate(np.concatenate(([-np.inf], y[order][:-1])))
    return order[y[order] > best].astype(np.int64)
