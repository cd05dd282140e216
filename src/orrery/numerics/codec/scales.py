"""The scales of a tensor: how each rule of ``Scaling`` finds them, all in FP32.

One level: scale = amax / highest, stored in the scale's element; numbers are divided by it. Two levels (NVFP4, as in
NVIDIA's Transformer Engine): outer = highest_scale highest / amax of the tensor, stored = e4m3(amax of the block
(outer / highest)), and numbers are multiplied by 1 / (stored / outer). A group that holds NaN or infinity gets the
scale NaN: all of it is NaN.
"""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from orrery.numerics.codec.rounding import round_to
from orrery.numerics.element import Element, Ladder
from orrery.numerics.scaling import Scaling

Float32s = NDArray[np.float32]

MAX_FP32 = np.float32(np.finfo(np.float32).max)
E8M0_EXPONENTS = (-127, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScales:
    """Scales of groups: what is stored, what a decoded number is multiplied by, and what is added before and after."""

    stored: Float32s  # as the scale's element holds it
    decode: Float32s  # times the outer scale
    encode: Float32s | None = None  # numbers are multiplied by it; None: divided by ``decode``
    zero: Float32s | None = None  # steps that are added to a coded number
    minimum: Float32s | None = None  # what is subtracted before scaling


def outer_scale(amax: float, element: Element, scale: Element) -> np.float32:
    """Factor of block scales before they are stored: highest_scale highest / amax; 1 for a tensor of zeros."""
    if amax == 0.0:
        return np.float32(1.0)
    with np.errstate(over="ignore"):
        found = np.float32(scale.highest * element.highest) / np.float32(amax if np.isfinite(amax) else np.nan)
    return np.float32(np.minimum(found, MAX_FP32))


def scales_of(amax: Float32s, element: Element, scaling: Scaling, outer: np.float32 | None) -> GroupScales:
    """Scales of groups of which the largest magnitudes are known."""
    amax = np.where(np.isfinite(amax), amax, np.float32(np.nan))
    level, highest = scaling.levels[0], np.float32(element.highest)
    with np.errstate(all="ignore"):
        if scaling.rule in ("floor", "ceil"):
            stored = _power_of_two(amax, element.highest, scaling.rule)
            return GroupScales(stored=stored, decode=stored, encode=np.float32(1.0) / stored)  # exact
        elif outer is None:
            stored = _rounded(amax / highest, level.scale)
        else:
            stored = _rounded(amax * (outer * (np.float32(1.0) / highest)), level.scale)
        if outer is None:
            return GroupScales(stored=stored, decode=stored)
        decode = stored * (np.float32(1.0) / outer)
        encode = np.where(decode > 0, np.minimum(np.float32(1.0) / decode, MAX_FP32), decode)
        return GroupScales(stored=stored, decode=decode, encode=encode)


def scales_between(lowest: Float32s, highest: Float32s, element: Element, scaling: Scaling) -> GroupScales:
    """Scales of groups of which both ends are known: asymmetric, or by the extreme."""
    bad = ~(np.isfinite(lowest) & np.isfinite(highest))
    lowest, highest = (np.where(bad, np.float32(np.nan), end) for end in (lowest, highest))
    scale = scaling.levels[0].scale
    steps = np.float32(element.highest)
    with np.errstate(all="ignore"):
        if scaling.rule == "extreme":
            farthest = np.where(np.abs(lowest) >= np.abs(highest), lowest, highest)
            bottom = np.float32(cast(Ladder, element.layout).lowest)  # spellings allow signed integers alone
            stored = _rounded(farthest / bottom, scale)
            return GroupScales(stored=stored, decode=stored)
        if scaling.zero_point == "minimum":
            stored = _rounded((highest - lowest) / steps, scale)
            return GroupScales(stored=stored, decode=stored, minimum=_rounded(lowest, scale))
        low, high = np.minimum(lowest, np.float32(0)), np.maximum(highest, np.float32(0))
        stored = _rounded((high - low) / steps, scale)
        zero = np.where(stored > 0, np.clip(np.rint(-low / stored), 0, steps), stored)
        return GroupScales(stored=stored, decode=stored, zero=zero.astype(np.float32))


def _power_of_two(amax: Float32s, highest: float, rule: str) -> Float32s:
    """Powers of two; the smallest there is for a group of zeros."""
    if rule == "floor":
        exponent = np.frexp(amax)[1] - int(np.frexp(highest)[1])
    else:
        fraction, exponent = np.frexp(amax.astype(np.float64) / highest)
        exponent = exponent - (fraction == 0.5)
    exponent = np.where(amax == 0, E8M0_EXPONENTS[0], np.clip(exponent, *E8M0_EXPONENTS))
    return np.where(np.isnan(amax), amax, np.ldexp(np.float32(1.0), exponent).astype(np.float32))


def _rounded(scale: NDArray[Any], element: Element | None) -> Float32s:
    """As its element stores it; FP32 where there is none."""
    return scale if element is None else round_to(np.ascontiguousarray(scale), element)
