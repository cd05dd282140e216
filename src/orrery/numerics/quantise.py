"""Tensors in scaled formats: codes and scales, and back.

Scales are shared along the last axis (blocks, groups, rows), in the last two axes (2-D blocks) or by the tensor.
All arithmetic is in FP32; tensors are treated piece by piece, so that one on disk needs no more memory than the result.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.numerics.codec import _kernel as loops
from orrery.numerics.codec.pieces import Piece, View, each_row, outer_of, pieces_of
from orrery.numerics.codec.rounding import as_floats, code_dtype, codes_of, decode, round_flat, round_scaled
from orrery.numerics.codec.scales import GroupScales
from orrery.numerics.element import Element
from orrery.numerics.format import Format
from orrery.numerics.parse import parse_format
from orrery.numerics.rounding import Rounding

Float32s = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantised:
    """A tensor as it is stored: one code a number, the scales of its blocks, and what they were made of.

    ``scales`` are (rows of blocks, blocks in a row), (1, 1) for a whole tensor, empty where nothing is scaled;
    ``zeros`` likewise. With two levels, a scale counts as ``scales / outer``.
    """

    format: Format
    codes: NDArray[Any]  # unsigned, in the tensor's shape
    scales: Float32s
    outer: float = 1.0
    zeros: Float32s | None = None  # zero points or minima

    def dequantise(self) -> Float32s:
        """The numbers that are stood for, in the tensor's shape."""
        values = np.asarray(decode(self.codes, codec_of(self.format)), dtype=np.float32)
        if not self.scales.size:
            return values
        view = View.of(self.codes.shape, self.format)
        decoded = self.scales
        if len(self.format.scaling.levels) > 1:
            decoded = decoded * (np.float32(1.0) / np.float32(self.outer))
        is_minimum = self.format.scaling.zero_point == "minimum"
        scales = GroupScales(
            stored=self.scales,
            decode=_each_row(decoded, view),
            zero=None if is_minimum or self.zeros is None else _each_row(self.zeros, view),
            minimum=_each_row(self.zeros, view) if is_minimum and self.zeros is not None else None,
        )
        _from_steps(values.reshape(view.rows, view.columns), view.size, scales)
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
    outer = outer_of(numbers, known, element)
    codes = np.empty(numbers.shape, dtype=code_dtype(element))
    flat = codes.reshape(-1)
    found: list[GroupScales] = []
    for piece in pieces_of(numbers, known, element, outer):
        steps = _in_steps(piece, element, rounding, rng)
        codes_of(steps.reshape(-1), element, flat[piece.where])
        if piece.scales is not None and not (found and found[-1] is piece.scales):
            found.append(piece.scales)
    if not found:
        return Quantised(format=known, codes=codes, scales=np.empty((0, 0), dtype=np.float32))
    view = View.of(numbers.shape, known)
    zeros = [s.minimum if s.zero is None else s.zero for s in found]
    retained = [z for z in zeros if z is not None]
    return Quantised(
        format=known,
        codes=codes,
        scales=_each_block([s.stored for s in found], view),
        outer=1.0 if outer is None else float(outer),
        zeros=_each_block(retained, view) if retained else None,
    )


@typed
def round_trip(
    x: ArrayLike,
    format: Format | str,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
    out: Float32s | None = None,
) -> Float32s:
    """The numbers that ``x`` becomes when it is stored in ``format`` and read back: FP32, in x's shape.

    ``out`` is contiguous FP32 of that shape, on disk if need be, and not x itself.
    """
    known, numbers = as_format(format), _tensor(x)
    result = np.empty(numbers.shape, dtype=np.float32) if out is None else out
    if result.shape != numbers.shape or result.dtype != np.float32 or not result.flags.c_contiguous:
        raise ScenarioError(f"out is {result.shape} {result.dtype}; give contiguous float32 of shape {numbers.shape}.")
    element, flat = codec_of(known), result.reshape(-1)
    for piece in pieces_of(numbers, known, element, outer_of(numbers, known, element)):
        _round_piece(piece, element, rounding, rng, flat[piece.where].reshape(piece.numbers.shape))
    return result


def round_trip_pieces(
    x: NDArray[Any],
    format: Format,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
) -> Iterator[tuple[slice, Float32s]]:
    """``round_trip`` piece by piece: where in the flat tensor, and the numbers that stand there."""
    element, numbers = codec_of(format), _tensor(x)
    for piece in pieces_of(numbers, format, element, outer_of(numbers, format, element)):
        out = np.empty_like(piece.numbers)
        _round_piece(piece, element, rounding, rng, out)
        yield piece.where, out.reshape(-1)


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


def _round_piece(
    piece: Piece, element: Element, rounding: Rounding, rng: np.random.Generator | None, out: Float32s
) -> None:
    """A piece stored and read back, into ``out``: in one pass where the element allows it."""
    scales = piece.scales
    if scales is None:
        flat, numbers = out.reshape(-1), piece.numbers.reshape(-1)
        round_flat(numbers, element, flat, rounding=rounding, rng=rng, saturates=True)
        return
    if rounding is Rounding.NEAREST_EVEN and scales.zero is None and scales.minimum is None:
        encode = scales.decode if scales.encode is None else scales.encode
        if round_scaled(piece.numbers, piece.size, encode, scales.encode is None, scales.decode, element, out):
            return
    out[...] = _in_steps(piece, element, rounding, rng)
    _from_steps(out, piece.size, scales)


def _in_steps(piece: Piece, element: Element, rounding: Rounding, rng: np.random.Generator | None) -> Float32s:
    """A piece's numbers in units of their scales, rounded to the element.

    Every loop writes to an array of its own: one that may be its input is not turned into vector code.
    """
    scales, scaled = piece.scales, piece.numbers
    if scales is not None:
        numbers, scaled = piece.numbers, np.empty_like(piece.numbers)
        if scales.minimum is not None:
            numbers = np.empty_like(numbers)
            loops.add_groups(piece.numbers, piece.size, -scales.minimum, numbers)
        if scales.encode is not None:
            loops.multiply_groups(numbers, piece.size, scales.encode, scaled)
        else:
            loops.divide_groups(numbers, piece.size, scales.decode, scaled)
        if scales.zero is not None:
            loops.add_groups(scaled, piece.size, scales.zero, scaled)
    steps = np.empty_like(scaled)
    round_flat(scaled.reshape(-1), element, steps.reshape(-1), rounding=rounding, rng=rng, saturates=True)
    return steps


def _from_steps(steps: Float32s, size: int, scales: GroupScales) -> None:
    """Rounded numbers back in their own units, in place."""
    if scales.zero is not None:
        loops.add_groups(steps, size, -scales.zero, steps)
    loops.multiply_groups(steps, size, scales.decode, steps)
    if scales.minimum is not None:
        loops.add_groups(steps, size, scales.minimum, steps)


def _each_row(of_blocks: Float32s, view: View) -> Float32s:
    """One value for a row of blocks, repeated for each row."""
    if view.block_rows == 1:
        return of_blocks
    return each_row(of_blocks, view.starts(), view.rows)


def _each_block(of_rows: list[Float32s], view: View) -> Float32s:
    """One value for each row, repeated for a row of blocks."""
    whole = np.concatenate(of_rows)
    return whole if view.block_rows == 1 else whole[view.starts()]
