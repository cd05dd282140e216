"""An op's sizes, numbers and arrays mixed, as flat columns of one length for a compiled kernel."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from orrery.kernels.ops import Floats, Size, Timing


def flat_columns(sizes: Sequence[Any], dtype: DTypeLike) -> tuple[tuple[int, ...], list[NDArray[Any]]]:
    """The common shape, and every size as a flat contiguous array of it.

    Numbers beside arrays of one shape, which is what a step asks for, are filled in without numpy's general broadcast.
    """
    arrays: list[NDArray[Any]] = [size for size in sizes if isinstance(size, np.ndarray)]
    shapes = {a.shape for a in arrays}
    if len(shapes) != 1:
        spread = np.broadcast_arrays(*sizes)
        return spread[0].shape, [np.ascontiguousarray(a, dtype=dtype).ravel() for a in spread]
    shape = shapes.pop()
    return shape, [
        np.ascontiguousarray(size, dtype=dtype).ravel() if isinstance(size, np.ndarray) else _filled(shape, size, dtype)
        for size in sizes
    ]


def _filled(shape: tuple[int, ...], size: Size | float, dtype: DTypeLike) -> NDArray[Any]:
    out = np.empty(shape, dtype=dtype)
    out.fill(size)
    return out.ravel()


def as_columns(sizes: Sequence[Size]) -> tuple[tuple[int, ...] | None, Sequence[Size]]:
    """The sizes as they are (shape None) if all are plain numbers, else as flat arrays of their common shape."""
    for size in sizes:
        if not isinstance(size, int):
            break
    else:
        return None, sizes
    return flat_columns(sizes, np.int64)


def timing(rows: Floats, shape: tuple[int, ...] | None = None) -> Timing:
    """The six rows that every kernel answers first: time, compute roof, memory roof, overhead, flops, bytes."""
    if shape is not None:
        rows = rows.reshape(6, *shape)
    return Timing(time_s=rows[0], compute_s=rows[1], memory_s=rows[2], overhead_s=rows[3], flops=rows[4], bytes=rows[5])
