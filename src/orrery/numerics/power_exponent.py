"""Numbers raised to a power before they are rounded to even steps: levels lie densest where most numbers are.

    code = round(highest |x / scale|^a) with the sign of x        |xy|^a = |x|^a |y|^a

Powers are the only continuous maps that keep products, so the product of two codes stands for the product of the two
numbers, and a table over whole numbers turns it back: no floating-point work is left but the scales. The exponent is
searched (the error has one minimum, PowerQuant, Yvinec et al. 2023) or learned by the straight-through gradient
(NUPES, arXiv 2308.05600). The grid itself is the element "power4_0.5", which rounds to the nearest value instead.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.base.errors import OutOfRange

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_EXPONENT, MAX_EXPONENT = 0.1, 1.5
"""Exponents worth trying: 1 is the even grid, those above it thin out the middle."""

GOLDEN = (5.0**0.5 - 1.0) / 2.0


def raised(x: ArrayLike, exponent: float) -> Floats:
    """|x|^exponent with the sign of x; an exponent of 1 / a undoes one of a."""
    exact = np.asarray(x, dtype=np.float64)
    return np.sign(exact) * np.abs(exact) ** exponent


def searched_exponent(loss: Callable[[float], float], tolerance: float = 1e-3) -> float:
    """The exponent with the least loss, by golden sections of the range."""
    low, high = MIN_EXPONENT, MAX_EXPONENT
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > tolerance:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = loss(right)
    return (low + high) / 2.0


def codes_of(x: ArrayLike, bits: int, exponent: float) -> tuple[Ints, Floats]:
    """Signed codes of ``bits``, and one scale for each row, or for a vector."""
    exact = np.asarray(x, dtype=np.float64)
    if not 2 <= bits <= 16:
        raise OutOfRange(f"power exponent: {bits} bits; write 2 to 16.")
    scale = np.abs(exact).max(axis=-1, keepdims=True, initial=0.0)
    scale = np.where(scale > 0, scale, 1.0)
    return np.rint(highest(bits) * raised(exact / scale, exponent)).astype(np.int64), scale


def values_of(codes: Ints, scale: Floats, bits: int, exponent: float) -> Floats:
    """The numbers that codes stand for."""
    return raised(codes / highest(bits), 1.0 / exponent) * scale


def highest(bits: int) -> int:
    """The largest code; codes are symmetric about zero."""
    return (1 << (bits - 1)) - 1
