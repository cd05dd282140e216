"""Continuations dealt out by score: the better a candidate, the more of them, rounded up from the best down."""

from math import ceil

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


def by_softmax(scores: Floats, width: int, temperature: float) -> Ints:
    """Shares of ``width`` by exp(score / temperature), largest first, each rounded up until none are left."""
    weights = np.exp((scores - scores.max(initial=0.0)) / temperature)
    counts, left, weight_left = np.zeros(scores.size, dtype=np.int64), float(width), float(weights.sum())
    for i in np.argsort(-scores, kind="stable"):
        if left <= 0 or weight_left <= 0:
            break
        counts[i] = min(ceil(left * weights[i] / weight_left - 1e-12), int(left))
        left -= counts[i]
        weight_left -= float(weights[i])
    return counts
