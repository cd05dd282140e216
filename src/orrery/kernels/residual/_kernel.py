"""Walk a small forest of regression trees for every row of a feature table.

Nodes of all trees lie in one array; ``low`` is a node's child for feature <= threshold and its neighbour ``low + 1``
the other one. A leaf points to itself with an infinite threshold, so every walk takes the tree's depth, without
branches that a processor could mispredict.
"""

import math

import numpy as np

from orrery.base.compiled import Floats, Floats2, Singles, Words, compiled


@compiled
def total(
    x: Floats2, roots: Words, depths: Words, feature: Words, threshold: Singles, low: Words, value: Singles, out: Floats
) -> None:
    """``out[i]`` = sum over trees of the value of the leaf that row i reaches.

    Eight rows walk a tree side by side, so that one row's wait for memory is another's work.
    """
    rows = x.shape[0]
    node: Words = np.empty(8, np.int32)
    for start in range(0, rows, 8):
        count = min(8, rows - start)
        for j in range(count):
            out[start + j] = 0.0
        for t in range(roots.size):
            for j in range(count):
                node[j] = roots[t]
            for _ in range(depths[t]):
                for j in range(count):
                    at = node[j]
                    node[j] = low[at] + np.int32(x[start + j, feature[at]] > threshold[at])
            for j in range(count):
                out[start + j] += value[node[j]]


@compiled
def faded(size: Floats, low: float, high: float, out: Floats) -> None:
    """Multiply ``out`` by 1 inside [low, high], falling to 0 in log size over the next factor of 2 on either side."""
    for i in range(size.size):
        if low <= size[i] <= high:
            continue
        if size[i] <= 0.0:
            out[i] = 0.0
            continue
        beyond = max(math.log2(low / size[i]), math.log2(size[i] / high))
        if beyond > 0.0:
            out[i] *= max(0.0, 1.0 - beyond)
