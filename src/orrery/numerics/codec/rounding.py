"""Rounding and coding of arrays, one element format at a time, without any scale.

What is beyond the largest number saturates (as the conversion instructions of accelerators do by default, and as every
scaled format does), or with ``saturates=False`` becomes what the format has for it: infinity, else NaN, else the
largest number. NaN stays NaN; a format that has none takes it as minus zero (floats, as ml_dtypes), zero (integers) or
an error (tables).
"""

from functools import lru_cache
from typing import Any, TypeGuard, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.codec import _kernel as loops
from orrery.numerics.codec._kernel import NEAREST_EVEN
from orrery.numerics.codec.grids import drawn_on_grid, look_up, refuse_nan
from orrery.numerics.element import MAX_TABULATED_BITS, Element, Grid, Ladder
from orrery.numerics.families.fixed import MAX_FP32_BITS, Fixed
from orrery.numerics.families.minifloat import Minifloat
from orrery.numerics.names import get_element
from orrery.numerics.rounding import Rounding

Float32s = NDArray[np.float32]
Codes = NDArray[Any]

MODES = {mode: i for i, mode in enumerate(Rounding)}
"""The kernel's numbers of the modes, which have the same order."""

MIN_FP32, MAX_FP32 = -126, 104
"""Exponents of steps that the FP32 loop may have: they and their inverses are normal numbers."""

CHUNK = 1 << 18
"""Numbers treated at a time: an array of them stays in the second-level cache."""

_NO_CHANCE = np.ones(1)


def as_element(element: Element | str) -> Element:
    """An element, or the one of that name."""
    return get_element(element) if isinstance(element, str) else element


def as_floats(x: ArrayLike) -> NDArray[Any]:
    """A contiguous array of FP32, or of FP64 where FP32 could not hold the numbers as exactly."""
    array = np.asarray(x)
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in "fiub":
        raise ScenarioError(f"Numbers are rounded, got an array of {array.dtype}; give floats or integers.")
    is_wide = size > 4 if kind == "f" else size > 2
    return np.asarray(array, dtype=np.float64 if is_wide else np.float32, order="C")


def round_to(
    x: ArrayLike,
    element: Element | str,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
    saturates: bool = True,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """The numbers of ``element`` that ``x`` rounds to, in x's shape; FP64 where x is FP64, else FP32.

    ``out`` is contiguous and may be x itself. Raises ScenarioError for stochastic rounding without ``rng``.
    """
    numbers, known = as_floats(x), as_element(element)
    result = np.empty_like(numbers) if out is None else out
    if result.shape != numbers.shape or result.dtype.kind != "f" or not result.flags.c_contiguous:
        raise ScenarioError(f"out is {result.shape} {result.dtype}; give contiguous floats of shape {numbers.shape}.")
    x_flat, out_flat = numbers.reshape(-1), result.reshape(-1)
    is_same = out is not None and np.may_share_memory(numbers, result)
    step = CHUNK if is_same else max(1, x_flat.size)  # a loop in place is not turned into vector code
    for start in range(0, x_flat.size, step):
        part = x_flat[start : start + step]
        part = part.copy() if is_same else part
        round_flat(part, known, out_flat[start : start + step], rounding=rounding, rng=rng, saturates=saturates)
    return result


def round_flat(
    x: NDArray[Any],
    element: Element,
    out: NDArray[Any],
    *,
    rounding: Rounding,
    rng: np.random.Generator | None,
    saturates: bool,
) -> None:
    """``round_to`` on flat arrays, into ``out``."""
    if x.dtype != out.dtype:
        wide = x.astype(np.float64)
        made = np.empty_like(wide)
        round_flat(wide, element, made, rounding=rounding, rng=rng, saturates=saturates)
        out[...] = made
        return
    mode = MODES[rounding]
    layout = element.layout
    if rounding.is_drawn:
        if rng is None:
            raise ScenarioError("Stochastic rounding draws: give rng, a numpy.random.Generator.")
        for start in range(0, x.size, CHUNK):
            part = slice(start, start + CHUNK)
            chance = 1.0 - rng.random(x[part].size)
            if isinstance(layout, Grid):
                out[part] = drawn_on_grid(x[part], layout, chance, rounding)
            else:
                _on_ladder(x[part], element, layout, out[part], mode, chance, saturates)
    elif isinstance(layout, Grid):
        refuse_nan(x, element)
        look_up(x, layout, out, rounding, np.nan)
    else:
        _on_ladder(x, element, layout, out, mode, _NO_CHANCE, saturates)


def _on_ladder(
    x: NDArray[Any],
    element: Element,
    ladder: Ladder,
    out: NDArray[Any],
    mode: int,
    chance: NDArray[Any],
    saturates: bool,
) -> None:
    limits = _limits(ladder, saturates)
    if mode == NEAREST_EVEN and x.dtype == out.dtype == np.float32:
        if isinstance(element, Minifloat) and element.is_fp32_scale:
            loops.round_powers_f32(x, out, np.float32(limits[2]))
            return
        if has_fp32_exponents(element):
            loops.round_bits_f32(x, out, ladder.mantissa_bits, limits.astype(np.float32))
            return
        if _is_fp32(ladder):
            loops.round_nearest_f32(
                x, out, ladder.min_exponent, ladder.mantissa_bits, ladder.sub_exponent, limits.astype(np.float32)
            )
            return
    loops.round_f64(x, out, ladder.min_exponent, ladder.mantissa_bits, ladder.sub_exponent, limits, mode, chance)
    if isinstance(element, Minifloat) and not element.has_zero:
        out[~(x > 0)] = np.nan  # nothing stands for zero or less


@lru_cache(maxsize=256)
def _limits(ladder: Ladder, saturates: bool) -> NDArray[np.float64]:
    above, below = (ladder.highest, ladder.lowest) if saturates else (ladder.above, ladder.below)
    zero = -0.0 if ladder.has_negative_zero else 0.0
    return np.array([ladder.highest, ladder.lowest, above, below, ladder.nan_as, zero])


def has_fp32_exponents(element: Element) -> TypeGuard[Minifloat]:
    """Whether an element is FP32 with fewer bits of mantissa."""
    return (
        isinstance(element, Minifloat)
        and element.exponent_bits == 8
        and element.bias == 127
        and element.is_signed
        and element.specials == "ieee"
        and element.has_subnormals
        and element.mantissa_bits <= 23
    )


@lru_cache(maxsize=256)
def _is_fp32(ladder: Ladder) -> bool:
    """Whether every step of the ladder is one that the FP32 loop may have, and no small number vanishes under it."""
    top = int(np.frexp(ladder.highest)[1])
    return (
        MIN_FP32 <= ladder.sub_exponent <= 0 and top - ladder.mantissa_bits <= MAX_FP32 and ladder.mantissa_bits <= 22
    )


def round_scaled(
    x: Float32s, size: int, encode: Float32s, divides: bool, decode: Float32s, element: Element, out: Float32s
) -> bool:
    """Rows rounded to nearest in units of their scales, in one pass; False where an element needs another way."""
    layout = element.layout
    if isinstance(layout, Grid) or not _is_fp32(layout):
        return False
    limits = _limits(layout, True).astype(np.float32)
    loops.round_groups_f32(
        x, size, encode, divides, decode, out, layout.min_exponent, layout.mantissa_bits, layout.sub_exponent, limits
    )
    return True


def code_dtype(element: Element) -> Any:
    """The unsigned integer that holds a code."""
    return (
        np.uint8
        if element.bits <= 8
        else np.uint16
        if element.bits <= 16
        else np.uint32
        if element.bits <= 32
        else np.uint64
    )


def encode(
    x: ArrayLike,
    element: Element | str,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
    saturates: bool = True,
) -> Codes:
    """The codes of the numbers that ``x`` rounds to, in x's shape, one unsigned integer each (see ``packing``)."""
    known = as_element(element)
    numbers = as_floats(x)
    if isinstance(known, Fixed) and known.bits > MAX_FP32_BITS:
        numbers = numbers.astype(np.float64)
    codes = np.empty(numbers.shape, dtype=code_dtype(known))
    flat, flat_codes = numbers.reshape(-1), codes.reshape(-1)
    if flat.dtype == np.float32 and rounding is Rounding.NEAREST_EVEN and has_fp32_exponents(known):
        infinity = 0xFF << known.mantissa_bits
        most = infinity - saturates
        loops.encode_bits_f32(flat, flat_codes, known.mantissa_bits, known.bits, known.nan_code, most)
        return codes
    buffer = np.empty(min(CHUNK, flat.size), dtype=flat.dtype)
    for start in range(0, flat.size, CHUNK):
        part = slice(start, start + CHUNK)
        rounded = buffer[: flat[part].size]
        round_flat(flat[part], known, rounded, rounding=rounding, rng=rng, saturates=saturates)
        codes_of(rounded, known, flat_codes[part])
    return codes


def codes_of(y: NDArray[Any], element: Element, codes: Codes) -> None:
    """The codes of numbers that are already numbers of ``element``, flat."""
    layout = element.layout
    if isinstance(layout, Grid):
        nan_code = int(np.flatnonzero(np.isnan(element.values()))[0]) if element.has_nan else 0
        look_up(y, layout, codes, Rounding.NEAREST_EVEN, nan_code, is_coded=True)
    elif isinstance(element, Minifloat):
        is_narrow = y.dtype == np.float32 and (_is_fp32(layout) or has_fp32_exponents(element))
        if is_narrow:
            loops.encode_f32(y, codes, *_code_marks(element, is_narrow))
        else:
            loops.encode_f64(y.astype(np.float64, copy=False), codes, *_code_marks(element, is_narrow))
    else:
        scale, mask = 2.0**-layout.sub_exponent, (1 << element.bits) - 1 if element.bits < 64 else -1
        if y.dtype == np.float32 and element.bits <= MAX_FP32_BITS:
            loops.encode_fixed_f32(y, codes, np.float32(scale), mask)
        else:
            loops.encode_fixed_f64(y.astype(np.float64, copy=False), codes, scale, mask)


@lru_cache(maxsize=128)
def _code_marks(element: Minifloat, is_narrow: bool) -> tuple[float, ...]:
    """Arguments of the coding loop, as ``encode_f32`` names them."""
    fraction_bits, bias = (23, 127) if is_narrow else (52, 1023)
    m, least = element.mantissa_bits, element.min_exponent
    cut, offset = fraction_bits - m, (least + bias - element.has_zero) << m
    has_same = is_narrow and has_fp32_exponents(element)  # codes are the upper bits, subnormals included
    smallest = 0.0 if has_same else 2.0**least
    scale = 0.0 if has_same else 2.0 ** (m - least)
    all_ones = (1 << (element.exponent_bits + m)) - 1
    most = (all_ones >> m) << m if element.specials == "ieee" else all_ones
    sign_bit = element.bits if element.is_signed else 0
    nan_sign = 0 if element.specials == "fnuz" or not element.is_signed else 1 << (sign_bit - 1)
    nan_sign = nan_sign if sign_bit < 64 else -nan_sign  # the same bits as a signed number
    return cut, offset, smallest, scale, sign_bit, element.nan_code, nan_sign, most


def decode(codes: ArrayLike, element: Element | str) -> Float32s:
    """The values of codes, FP32 (FP64 for elements beyond 16 bits), in the codes' shape."""
    known, array = as_element(element), np.asarray(codes, order="C")
    if array.dtype.kind not in "iu":
        raise ScenarioError(f"Codes are whole numbers, got an array of {array.dtype}.")
    if array.size and not (array.dtype.kind == "u" and array.dtype.itemsize * 8 <= known.bits):
        least = int(array.min()) if array.dtype.kind == "i" else 0
        if least < 0 or int(array.max()) >> known.bits:
            raise ScenarioError(f"{known.name} has codes 0 to {(1 << known.bits) - 1}; got {least} to {array.max()}.")
    array = array.astype(code_dtype(known), copy=False)
    if known.bits > MAX_TABULATED_BITS:
        return _decode_wide(array, known)
    if has_fp32_exponents(known):
        return np.left_shift(array, 23 - known.mantissa_bits, dtype=np.uint32).view(np.float32)
    out = np.empty(array.shape, dtype=np.float32)
    if isinstance(known, Fixed):
        sign = 1 << (known.bits - 1) if known.is_signed else 0
        scale = np.float32(2.0**-known.fraction_bits)
        loops.decode_fixed(array.reshape(-1), sign, known.lowest_code, scale, out.reshape(-1))
        return out
    loops.decode_table(array.reshape(-1), value_table(known), out.reshape(-1))
    return out


@lru_cache(maxsize=64)
def value_table(element: Element) -> Float32s:
    """The values of all codes as FP32."""
    return element.values().astype(np.float32)


def _decode_wide(codes: Codes, element: Element) -> Any:
    wide = codes.astype(np.int64)
    if not isinstance(element, Minifloat):
        layout = cast(Ladder, element.layout)
        signed = np.where(wide >> (element.bits - 1), wide - (1 << element.bits), wide) if layout.lowest < 0 else wide
        return signed * 2.0**layout.sub_exponent
    half = element.exponent_bits + element.mantissa_bits
    mantissa = wide & ((1 << element.mantissa_bits) - 1)
    exponent = (wide >> element.mantissa_bits) & ((1 << element.exponent_bits) - 1)
    hidden = np.where(exponent > 0, 1 << element.mantissa_bits, 0)
    value = np.ldexp(
        (hidden + mantissa).astype(np.float64), np.maximum(exponent, 1) - element.bias - element.mantissa_bits
    )
    if element.specials == "ieee":
        is_top = exponent == (1 << element.exponent_bits) - 1
        value = np.where(is_top, np.where(mantissa > 0, np.nan, np.inf), value)
    return np.where((wide >> half) & 1, -value, value) if element.is_signed else value
