"""The Pareto front: what no other choice beats on both counts at once."""

import numpy as np
from numpy.typing import NDArray

from orrery.planner._kernel import mark_reached

Floats = NDArray[np.float64]


def front(x: Floats, y: Floats) -> NDArray[np.int64]:
    """Indices of the points that no other point reaches in both ``x`` and ``y`` (more is better), by falling ``x``.

    Of equal points the first stands for all.
    """
    order = np.lexsort((np.arange(x.size), -y, -x))
    best = np.maximum.accumulate(np.concatenate(([-np.inf], y[order][:-1])))
    return order[y[order] > best].astype(np.int64)


def least(values: Floats) -> NDArray[np.int64]:
    """Indices of the rows of ``values`` (n, k) that no other row reaches in every column (less is better), by the first
    column. Of equal rows the first stands for all.

    The row with the least first column (then second, …) is always one; it strikes out what it reaches, and so on.
    """
    keys = np.concatenate([np.arange(values.shape[0], dtype=np.float64)[None, :], values.T[::-1]])
    left: NDArray[np.int64] = np.lexsort(keys)
    retained: list[int] = []
    while left.size:
        best, left = int(left[0]), left[1:]
        retained.append(best)
        left = left[(values[left] < values[best]).any(axis=1)]
    return np.array(retained, dtype=np.int64)


def reached(values: Floats, by: Floats) -> NDArray[np.bool_]:
    """Which rows of ``values`` (n, k) some row of ``by`` (m, k) reaches in every column (less is better)."""
    out = np.zeros(values.shape[0], dtype=np.bool_)
    mark_reached(np.ascontiguousarray(values), np.ascontiguousarray(by), out)
    return out
