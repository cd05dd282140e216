"""From an op's sizes to a kernel's columns and back to a ``Timing``."""

from collections.abc import Sequence

import numpy as np

from orrery.kernels.columns import flat_columns
from orrery.kernels.ops import Floats, Size, Timing


def as_columns(sizes: Sequence[Size]) -> tuple[tuple[int, ...] | None, Sequence[Size]]:
    """The sizes as they are (shape None) if all are plain numbers, else as flat arrays of their common shape."""
    for size in sizes:
        if not isinstance(size, int):
            break
    else:
        return None, sizes
    return flat_columns(sizes, np.int64)


def timing(rows: Floats, shape: tuple[int, ...] | None = None) -> Timing:
    """The kernel's six rows: time, compute roof, memory roof, overhead, flops, bytes."""
    if shape is not None:
        rows = rows.reshape(6, *shape)
    return Timing(time_s=rows[0], compute_s=rows[1], memory_s=rows[2], overhead_s=rows[3], flops=rows[4], bytes=rows[5])
