"""A cycle through all of a set of places in random order: what a pointer chase follows."""

import numpy as np
from numpy.typing import NDArray


def chained(count: int, seed: int = 0) -> NDArray[np.int64]:
    """``follows[i]`` is the place after ``i``; all ``count`` places lie on one cycle."""
    order = np.random.default_rng(seed).permutation(count)
    follows = np.empty(count, dtype=np.int64)
    follows[order] = np.roll(order, -1)
    return follows
