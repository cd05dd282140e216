"""A tensor in pieces that stay in cache, each with the scales of its groups.

A group is ``size`` numbers in a row; where blocks have several rows, their scale stands once for each row. The last
group of a row may be shorter than the others, and the last block of a matrix lower.
"""

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.numerics.codec import _kernel as loops
from orrery.numerics.codec.rounding import CHUNK
from orrery.numerics.codec.scales import GroupScales, outer_scale, scales_between, scales_of
from orrery.numerics.element import Element
from orrery.numerics.format import Format

Float32s = NDArray[np.float32]

HELD = 1 << 24
"""Numbers of a file that are read before their pages are handed back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Some of a tensor: where in it, its numbers (rows, columns), and the scales of every ``size`` columns."""

    where: slice
    numbers: Float32s
    size: int
    scales: GroupScales | None


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A tensor as rows of groups, ``matrix_rows`` of them to a matrix, ``block_rows`` to a block."""

    rows: int
    columns: int
    size: int
    block_rows: int
    matrix_rows: int

    @classmethod
    def of(cls, shape: tuple[int, ...], format: Format) -> "View":
        """Cuts of a tensor of ``shape`` by a format's innermost scale."""
        count = int(np.prod(shape, dtype=np.int64))
        columns = max(1, shape[-1]) if shape else 1
        if is_whole(shape, format):
            return cls(rows=min(1, count), columns=max(1, count), size=max(1, count), block_rows=1, matrix_rows=1)
        share = format.scaling.levels[0].share
        block_rows, size = share if isinstance(share, tuple) else (1, columns)
        if block_rows == 1 and columns % size == 0:  # groups one under the other
            return cls(rows=count // size, columns=size, size=size, block_rows=1, matrix_rows=max(1, count // size))
        rows, matrix_rows = count // columns, max(1, shape[-2]) if len(shape) > 1 else 1
        return cls(rows=rows, columns=columns, size=size, block_rows=block_rows, matrix_rows=matrix_rows)

    @property
    def groups(self) -> int:
        """Groups in a row."""
        return -(-self.columns // self.size)

    @property
    def row_blocks(self) -> int:
        """Rows of blocks."""
        return self.rows // self.matrix_rows * -(-self.matrix_rows // self.block_rows)

    def starts(self) -> NDArray[np.int64]:
        """The first row of every row of blocks; no block reaches into the next matrix."""
        in_matrix = np.arange(0, self.matrix_rows, self.block_rows)
        return (np.arange(0, self.rows, self.matrix_rows)[:, None] + in_matrix).reshape(-1)


def is_whole(shape: tuple[int, ...], format: Format) -> bool:
    """Whether all of a tensor shares the innermost scale."""
    share = format.scaling.levels[0].share
    return share == "tensor" or (share == "row" and len(shape) < 2)


def outer_of(x: NDArray[Any], format: Format, element: Element) -> np.float32 | None:
    """The factor of the tensor's own scale, where a format has two levels."""
    levels = format.scaling.levels
    if len(levels) < 2 or levels[0].scale is None:
        return None
    return outer_scale(tensor_amax(x), element, levels[0].scale)


def tensor_amax(x: NDArray[Any]) -> float:
    """The largest magnitude of a tensor, read piece by piece; NaN where one is in it."""
    most, found = np.float32(0.0), np.empty((1, 1), dtype=np.float32)
    for _, part in stretches(x):
        loops.group_amax(part, part.size, found)
        most = np.maximum(most, found[0, 0])
    return float(most)


def pieces_of(x: NDArray[Any], format: Format, element: Element, outer: np.float32 | None) -> Iterator[Piece]:
    """The tensor piece by piece."""
    if not format.scaling.levels or is_whole(x.shape, format):
        scales = _whole_scales(x, format, element, outer) if format.scaling.levels and x.size else None
        for where, part in stretches(x):
            yield Piece(where=where, numbers=part, size=part.size, scales=scales)
        return
    view = View.of(x.shape, format)
    table = x.reshape(view.rows, view.columns)
    for begin, end, starts in _some_rows(view):
        part = np.ascontiguousarray(table[begin:end], dtype=np.float32)
        scales = _scales(part, view, starts, format, element, outer)
        yield Piece(where=slice(begin * view.columns, end * view.columns), numbers=part, size=view.size, scales=scales)
        if begin * view.columns // HELD != end * view.columns // HELD:
            let_go(x)


def _some_rows(view: View) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """First and last row of a piece, and where in it blocks of several rows begin."""
    at_once = max(1, CHUNK // (view.columns * view.block_rows))
    if view.block_rows == 1:
        for begin in range(0, view.rows, at_once):
            yield begin, min(begin + at_once, view.rows), np.empty(0, dtype=np.int64)
        return
    starts = view.starts()
    for first in range(0, starts.size, at_once):
        begin = int(starts[first])
        end = int(starts[first + at_once]) if first + at_once < starts.size else view.rows
        yield begin, end, starts[first : first + at_once] - begin


def let_go(x: NDArray[Any]) -> None:
    """Hand the pages of a file that is mapped into memory back to the system, which keeps them while there is room."""
    mapping = getattr(x, "_mmap", None)
    if isinstance(mapping, mmap.mmap) and getattr(x, "mode", "c") != "c" and hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)  # private copies (mode c) would be lost


def stretches(x: NDArray[Any]) -> Iterator[tuple[slice, Float32s]]:
    """A flat tensor in single rows of a chunk each."""
    flat = x.reshape(-1)
    for start in range(0, flat.size, CHUNK):
        part = np.ascontiguousarray(flat[start : start + CHUNK], dtype=np.float32)[None, :]
        yield slice(start, start + part.size), part
        if start % HELD == 0:
            let_go(x)


def _whole_scales(x: NDArray[Any], format: Format, element: Element, outer: np.float32 | None) -> GroupScales:
    """The scales of a tensor that is one group."""
    if not _needs_ends(format):
        return scales_of(np.array([[tensor_amax(x)]], dtype=np.float32), element, format.scaling, outer)
    low, high = (np.array([[end]], dtype=np.float32) for end in (x.min(), x.max()))
    return scales_between(low, high, element, format.scaling)


def _needs_ends(format: Format) -> bool:
    return bool(format.scaling.zero_point) or format.scaling.rule == "extreme"


def _scales(
    part: Float32s, view: View, starts: NDArray[np.int64], format: Format, element: Element, outer: np.float32 | None
) -> GroupScales:
    """The scales of some rows, once for each row."""
    shape = (part.shape[0], view.groups)
    if _needs_ends(format):
        low, high = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
        loops.group_ends(part, view.size, low, high)
        low, high = _over_blocks(np.minimum, low, view, starts), _over_blocks(np.maximum, high, view, starts)
        return scales_between(low, high, element, format.scaling)
    amax = np.empty(shape, dtype=np.float32)
    loops.group_amax(part, view.size, amax)
    return scales_of(_over_blocks(np.maximum, amax, view, starts), element, format.scaling, outer)


def _over_blocks(over: Any, found: Float32s, view: View, starts: NDArray[np.int64]) -> Float32s:
    """The end over all rows of a block, repeated for each of them."""
    if view.block_rows == 1:
        return found
    return each_row(over.reduceat(found, starts, axis=0), starts, found.shape[0])


def each_row(of_blocks: Float32s, starts: NDArray[np.int64], rows: int) -> Float32s:
    """One value for a row of blocks, which begin at ``starts``, for each of so many rows."""
    return np.repeat(of_blocks, np.diff(np.append(starts, rows)), axis=0)
