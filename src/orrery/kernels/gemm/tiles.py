"""Output tiles that matrix kernels are built with, as (rows of m, columns of n); a fit chooses one set for a group.

Common sizes of the CUTLASS profiler and of cuBLAS kernel names; a set says which of them a library seems to have.
"""

import numpy as np
from numpy.typing import NDArray

TILE_SETS: tuple[tuple[tuple[int, int], ...], ...] = (
    ((16, 64), (16, 128), (32, 64), (32, 128), (64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128)),
    ((16, 64), (32, 64), (64, 64), (128, 64), (64, 128), (128, 128)),
    ((16, 128), (32, 128), (64, 128), (128, 128), (256, 128)),
    ((64, 64), (64, 128), (128, 128), (128, 256)),
    ((64, 64), (64, 128), (128, 128)),
    ((64, 128), (128, 128), (128, 256), (256, 128)),
    ((128, 128),),
)
"""From every size to a single one; the constant ``tile_set`` is an index into this table."""


def tile_set(index: float) -> NDArray[np.float64]:
    """One set as an array of (rows, columns)."""
    return np.array(TILE_SETS[int(index)], dtype=np.float64)
