"""Tensors in scaled formats: codes and scales, and back.

Scales are shared along the last axis (blocks, groups, rows), in the last two axes (2-D blocks) or by the tensor. A last group that
is shorter than the others has a scale of its own. All arithmetic is in FP32; tensors are treated piece by piece, so that
one on disk needs no more memory than the result.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.codec import _kernel as kernel
from orrery.numerics.codec.rounding import CHUNK, as_floats, code_dtype, codes_of, decode, round_flat
from orrery.numerics.codec.scales import GroupScales, outer_scale, scales_between, scales_of
from orrery.numerics.element import Element
from orrery.numerics.format import Format
from orrery.numerics.parse import parse_format
from orrery.numerics.rounding import Rounding

Float32s = NDArray[np.float32]
Loop = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """A tensor as it is stored: one code a number, the scales of its groups, and what they were made of."""

    format: Format
    codes: NDArray[Any]  # unsigned, in the tensor's shape
    scales: Float32s  # (rows, groups) as stored; (1, 1) for a whole tensor; empty where nothing is scaled
    outer: float = 1.0  # what stored scales are divided by, where there are two levels
    zeros: Float32s | None = None  # zero points or minima, like scales

    def dequantise(self) -> Float32s:
        """The numbers that are stood for, in the tensor's shape."""
        element = codec_of(self.format)
        values = np.asarray(decode(self.codes, element), dtype=np.float32)
        if not self.scales.size:
            return values
        view = _View.of(self.codes.shape, self.format)
        table = values.reshape(view.rows, view.columns)
        scales = view.by_row(self.scales, slice(None))
        decoded = (
            scales if len(self.format.scaling.levels) == 1 else scales * (np.float32(1.0) / np.float32(self.outer))
        )
        is_minimum = self.format.scaling.zero_point == "minimum"
        if self.zeros is not None and not is_minimum:
            cast(Loop, kernel.add_groups)(table, view.size, -self.zeros, table)
        cast(Loop, kernel.multiply_groups)(table, view.size, decoded, table)
        if self.zeros is not None and is_minimum:
            cast(Loop, kernel.add_groups)(table, view.size, self.zeros, table)
        return values


def quantise(
    x: ArrayLike,
    format: Format | str,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
) -> Quantised:
    """``x`` as codes and scales of ``format``. Raises ScenarioError for a format without a codec."""
    known = as_format(format)
    element, numbers = codec_of(known), _tensor(x)
    codes = np.empty(numbers.shape, dtype=code_dtype(element))
    flat = codes.reshape(-1)
    found: list[GroupScales] = []
    outer = _outer(numbers, known, element)
    for piece in _pieces(numbers, known, element, outer, rounding, rng):
        codes_of(piece.coded.reshape(-1), element, flat[piece.where])
        if piece.scales:
            found.append(piece.scales)
    if not found:
        return Quantised(format=known, codes=codes, scales=np.empty((0, 0), dtype=np.float32))
    if known.scaling.levels[0].share == "tensor":
        found = found[:1]
    extra = [s.zero if s.zero is not None else s.minimum for s in found]
    kept = [e for e in extra if e is not None]
    view = _View.of(numbers.shape, known)
    return Quantised(
        format=known, codes=codes, scales=view.by_block(np.concatenate([s.stored for s in found])),
        outer=float(outer) if outer is not None else 1.0, zeros=np.concatenate(kept) if kept else None,
    )  # fmt: skip


def round_trip(
    x: ArrayLike,
    format: Format | str,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
    out: Float32s | None = None,
) -> Float32s:
    """The numbers that ``x`` becomes when it is stored in ``format`` and read back: FP32, in x's shape."""
    known = as_format(format)
    numbers = _tensor(x)
    result = np.empty(numbers.shape, dtype=np.float32) if out is None else out
    flat = result.reshape(-1)
    for where, values in round_trip_pieces(numbers, known, rounding=rounding, rng=rng):
        flat[where] = values
    return result


def round_trip_pieces(
    x: NDArray[Any],
    format: Format,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
) -> Iterator[tuple[slice, Float32s]]:
    """``round_trip`` piece by piece: where in the flat tensor, and the numbers there, which the next piece overwrites."""
    element = codec_of(format)
    for piece in _pieces(x, format, element, _outer(x, format, element), rounding, rng):
        yield piece.where, piece.decoded()


def as_format(format: Format | str) -> Format:
    """A format, or the one that a name spells out."""
    return parse_format(format) if isinstance(format, str) else format


def codec_of(format: Format) -> Element:
    """The element of a format; ScenarioError for mixtures, which have none."""
    if format.element is None:
        raise ScenarioError(
            f"{format.name} is a mixture of several block formats ({format.title}); quantise to one, such as q4_0."
        )
    return format.element


def _tensor(x: ArrayLike) -> NDArray[Any]:
    """A contiguous array of floats; what lies on disk as FP32, FP16 or FP64 stays there."""
    array = np.asanyarray(x)
    return array if array.dtype.kind == "f" and array.flags.c_contiguous else as_floats(array)


@dataclass(frozen=True, slots=True, kw_only=True)
class _View:
    """A tensor as rows and columns of which every ``size`` share a scale; ``block_rows`` rows share it too."""

    rows: int
    columns: int
    size: int
    block_rows: int
    matrix_rows: int  # rows of one matrix, where a tensor is a stack of them

    @classmethod
    def of(cls, shape: tuple[int, ...], format: Format) -> "_View":
        count = int(np.prod(shape, dtype=np.int64))
        columns = max(1, shape[-1]) if shape else 1
        share = format.scaling.levels[0].share
        if share == "tensor" or (share == "row" and len(shape) < 2):
            return cls(rows=1, columns=count, size=max(1, count), block_rows=1, matrix_rows=1)
        rows = count // columns
        matrix_rows = max(1, shape[-2]) if len(shape) > 1 else 1
        block_rows, size = (1, columns) if share == "row" else share
        if block_rows == 1 and columns % size == 0:  # groups one under the other
            return cls(rows=count // size, columns=size, size=size, block_rows=1, matrix_rows=count // size)
        return cls(rows=rows, columns=columns, size=size, block_rows=block_rows, matrix_rows=matrix_rows)

    def starts(self) -> NDArray[np.int64]:
        """The first row of every row of blocks; no block reaches into the next matrix."""
        in_matrix = np.arange(0, self.matrix_rows, self.block_rows)
        return (np.arange(0, self.rows, self.matrix_rows)[:, None] + in_matrix).reshape(-1)

    def groups(self) -> int:
        return -(-self.columns // self.size)

    def by_row(self, scales: Float32s, rows: slice) -> Float32s:
        """The scales of blocks, once for each row."""
        if self.block_rows == 1:
            return scales[rows]
        counts = np.diff(np.append(self.starts(), self.rows))
        return np.ascontiguousarray(np.repeat(scales, counts, axis=0)[rows])

    def by_block(self, scales: Float32s) -> Float32s:
        """The scales of rows, once for each row of blocks."""
        return scales if self.block_rows == 1 else scales[self.starts()]


@dataclass(slots=True, kw_only=True)
class _Piece:
    """Some of a tensor: where, its numbers in steps of the element, and their scales."""

    where: slice
    coded: Float32s
    size: int
    scales: GroupScales | None

    def decoded(self) -> Float32s:
        """The numbers themselves, in place of the coded ones."""
        table = self.coded
        if self.scales is None:
            return table.reshape(-1)
        if self.scales.zero is not None:
            cast(Loop, kernel.add_groups)(table, self.size, -self.scales.zero, table)
        cast(Loop, kernel.multiply_groups)(table, self.size, self.scales.decode, table)
        if self.scales.minimum is not None:
            cast(Loop, kernel.add_groups)(table, self.size, self.scales.minimum, table)
        return table.reshape(-1)


def _pieces(
    x: NDArray[Any], format: Format, element: Element, outer: np.float32 | None, rounding: Rounding,
    rng: np.random.Generator | None,
) -> Iterator[_Piece]:  # fmt: skip
    """The tensor in pieces that stay in cache, each rounded in units of its scales."""
    flat, levels = x.reshape(-1), format.scaling.levels
    if not levels or levels[0].share == "tensor" or (levels[0].share == "row" and x.ndim < 2):
        whole = _whole_scales(flat, format, element) if levels else None
        for start in range(0, flat.size, CHUNK):
            part = np.ascontiguousarray(flat[start : start + CHUNK], dtype=np.float32)[None, :]
            yield _rounded(slice(start, start + part.size), part, part.size, whole, element, rounding, rng)
        return
    view = _View.of(x.shape, format)
    if not flat.size:
        return
    table, starts = flat.reshape(view.rows, view.columns), view.starts()
    at_once = max(1, CHUNK // (view.columns * view.block_rows))
    for first in range(0, starts.size, at_once):
        begin = int(starts[first])
        end = int(starts[first + at_once]) if first + at_once < starts.size else view.rows
        part = np.ascontiguousarray(table[begin:end], dtype=np.float32)
        scales = _scales(part, view, starts[first : first + at_once] - begin, format, element, outer)
        where = slice(begin * view.columns, end * view.columns)
        yield _rounded(where, part, view.size, scales, element, rounding, rng)


def _rounded(
    where: slice, part: Float32s, size: int, scales: GroupScales | None, element: Element, rounding: Rounding,
    rng: np.random.Generator | None,
) -> _Piece:  # fmt: skip
    coded = np.empty_like(part)
    if scales is None:
        coded[...] = part
    elif scales.encode is not None:
        cast(Loop, kernel.multiply_groups)(part, size, scales.encode, coded)
    elif scales.minimum is not None:
        cast(Loop, kernel.add_groups)(part, size, -scales.minimum, coded)
        cast(Loop, kernel.divide_groups)(coded, size, scales.decode, coded)
    else:
        cast(Loop, kernel.divide_groups)(part, size, scales.decode, coded)
        if scales.zero is not None:
            cast(Loop, kernel.add_groups)(coded, size, scales.zero, coded)
    round_flat(coded.reshape(-1), element, coded.reshape(-1), rounding=rounding, rng=rng, saturates=True)
    return _Piece(where=where, coded=coded, size=size, scales=scales)


def _outer(x: NDArray[Any], format: Format, element: Element) -> np.float32 | None:
    """The factor of the tensor's own scale, where a format has two levels."""
    levels = format.scaling.levels
    if len(levels) < 2 or levels[0].scale is None:
        return None
    return outer_scale(tensor_amax(x), element, levels[0].scale)


def tensor_amax(x: NDArray[Any]) -> float:
    """The largest magnitude of a tensor, read piece by piece; NaN where one is in it."""
    flat, most = x.reshape(-1), np.float32(0.0)
    found = np.empty((1, 1), dtype=np.float32)
    for start in range(0, flat.size, CHUNK):
        part = np.ascontiguousarray(flat[start : start + CHUNK], dtype=np.float32)[None, :]
        cast(Loop, kernel.group_amax)(part, part.size, found)
        most = np.maximum(most, found[0, 0])
    return float(most)


def _whole_scales(flat: NDArray[Any], format: Format, element: Element) -> GroupScales:
    """The scales of a tensor that is one group."""
    if _needs_ends(format):
        ends = [
            np.array([[f(flat)]], dtype=np.float32) if flat.size else np.zeros((1, 1), np.float32)
            for f in (np.min, np.max)
        ]
        return scales_between(ends[0], ends[1], element, format.scaling)
    return scales_of(np.array([[tensor_amax(flat)]], dtype=np.float32), element, format.scaling, None)


def _needs_ends(format: Format) -> bool:
    return bool(format.scaling.zero_point) or format.scaling.rule == "extreme"


def _scales(
    part: Float32s, view: _View, starts: NDArray[np.int64], format: Format, element: Element, outer: np.float32 | None
) -> GroupScales:
    """The scales of some rows, once for each row."""
    shape = (part.shape[0], view.groups())
    if _needs_ends(format):
        low, high = np.empty(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
        cast(Loop, kernel.group_ends)(part, view.size, low, high)
        return scales_between(
            _over_blocks(np.minimum, low, view, starts),
            _over_blocks(np.maximum, high, view, starts),
            element,
            format.scaling,
        )
    amax = np.empty(shape, dtype=np.float32)
    cast(Loop, kernel.group_amax)(part, view.size, amax)
    return scales_of(_over_blocks(np.maximum, amax, view, starts), element, format.scaling, outer)


def _over_blocks(over: Any, found: Float32s, view: _View, starts: NDArray[np.int64]) -> Float32s:
    """The end over all rows of a block, repeated for each of them."""
    if view.block_rows == 1:
        return found
    counts = np.diff(np.append(starts, found.shape[0]))
    return np.repeat(over.reduceat(found, starts, axis=0), counts, axis=0)
