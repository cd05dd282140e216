"""Where a step is costed, so that lines between these sizes stay close to it."""

import numpy as np

from orrery.execution.batch import Ints
from orrery.execution.surface._kernel import Floats

DENSE_TOKENS, EVEN_TOKENS, EVEN_STEP_TOKENS, TOKEN_STEPS = 64, 1024, 8, 24
"""Token counts: all of the first, then every eighth (kernels deal tiles of 8 rows and more), then so many to a
doubling (3 % apart)."""

TILE_TOKENS, TILED_TOKENS = 64, 4096
"""Up to the second, every multiple of the first and the size after it: a product jumps where a tile begins."""


def tokens(most: int) -> Ints:
    """Token counts of a step from 1 to ``most``."""
    even = np.arange(DENSE_TOKENS, EVEN_TOKENS + 1, EVEN_STEP_TOKENS)
    tiled = np.arange(TILE_TOKENS, TILED_TOKENS + 1, TILE_TOKENS)
    wide = ladder(EVEN_TOKENS, most, TOKEN_STEPS)
    nodes = np.concatenate([np.arange(1, DENSE_TOKENS), even, tiled, tiled + 1, wide, [most]])
    return np.unique(nodes[nodes <= most]).astype(np.int64)


def ladder(first: int, most: int, steps: int) -> Ints:
    """Whole sizes from ``first`` to ``most`` (two at least), so many ``steps`` to a doubling; each doubling is one."""
    most = max(most, 2 * first)
    rungs = first * 2.0 ** (np.arange(int(np.log2(most / first) * steps) + 1) / steps)
    return np.unique(np.append(np.rint(rungs), most)).astype(np.int64)


def dense(nodes: Ints, table: Floats, size: int) -> Floats:
    """A row for each of 0 … ``size``: lines between the nodes' rows, level before the first; zeros for nothing."""
    at = np.arange(size + 1)
    rows = np.zeros((size + 1, table.shape[1]))
    for channel in range(table.shape[1]):
        rows[1:, channel] = np.interp(at[1:], nodes, table[:, channel])
    return rows
