"""A cast to fixed point, its gradients by the number and by the binary point, and points chosen after training.

With f bits after the point of a word, cast(x) = clip(round(x 2^f)) / 2^f. Rounding and clipping are taken as flat in
f, x 2^f as it is, so the straight-through slopes are 1 (0 where clipped) by x, and by f

    d cast / df = ln 2 (x [inside] - cast(x)):

more bits after the point are good where rounding lost, bad where the word was full. (QFX, arXiv 2401.17544, section
3; the threshold of TQT, arXiv 1903.08066, is the same slope.)
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.families.fixed import Fixed
from orrery.numerics.rounding import Rounding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FRACTIONS = range(-24, 33)
"""Places of the binary point that a search considers: from words in steps of 2^24 to words far below one."""


@cache
def word(width_bits: int, fraction_bits: int) -> Fixed:
    """A signed word of that width with so many bits after its point."""
    return Fixed(name=f"fixed{width_bits}_{fraction_bits}", bits=width_bits, fraction_bits=fraction_bits)


def cast(x: ArrayLike, to: Fixed, rounding: Rounding = Rounding.NEAREST_EVEN) -> Floats:
    """The numbers of ``to`` that stand for ``x``; what is too large saturates."""
    return round_to(np.asarray(x, dtype=np.float64), to, rounding=rounding)


def codes_of(x: ArrayLike, to: Fixed, rounding: Rounding = Rounding.NEAREST_EVEN) -> Ints:
    """The whole numbers of those words, signed."""
    return np.ldexp(cast(x, to, rounding), to.fraction_bits).astype(np.int64)


def with_gradients(x: Floats, to: Fixed) -> tuple[Floats, Callable[[Floats], tuple[Floats, float]]]:
    """The cast, and from the gradient of its result those of ``x`` and of the fraction bits."""
    low, high = to.lowest_code * 2.0**-to.fraction_bits, to.highest
    is_inside = (x >= low) & (x <= high)
    out = cast(x, to)

    def back(d_out: Floats) -> tuple[Floats, float]:
        d_x = d_out * is_inside
        return d_x, float(np.log(2.0) * (np.vdot(d_x, x) - np.vdot(d_out, out)))

    return out, back


def range_point(x: ArrayLike, width_bits: int) -> int:
    """The most fraction bits with which nothing in ``x`` saturates."""
    return _best_point(x, width_bits, _overflow)


def least_error_point(x: ArrayLike, width_bits: int) -> int:
    """The fraction bits with the least squared error on ``x``: a few large values may saturate."""
    return _best_point(x, width_bits, lambda exact, to: float(np.square(cast(exact, to) - exact).sum()))


def _overflow(exact: Floats, to: Fixed) -> float:
    """Infinite where something saturates, else the step."""
    rounded = np.rint(np.ldexp(exact, to.fraction_bits))
    fits = rounded.max() <= to.highest_code and rounded.min() >= to.lowest_code
    return 2.0**-to.fraction_bits if fits else np.inf


def _best_point(x: ArrayLike, width_bits: int, loss: Callable[[Floats, Fixed], float]) -> int:
    exact = np.asarray(x, dtype=np.float64)
    if not exact.size or not np.isfinite(exact).all():
        raise ScenarioError("A binary point is chosen for finite numbers; write some, without NaN and infinity.")
    losses = [loss(exact, word(width_bits, f)) for f in FRACTIONS]
    return FRACTIONS[int(np.argmin(losses))]


def shifted(accumulator: Ints, shift_bits: int, rounding: Rounding) -> Ints:
    """Whole numbers over 2^shift_bits, rounded as hardware does: by the bits that are shifted out."""
    if rounding.is_drawn:
        raise ScenarioError(
            f"rounding = {rounding} draws, which a shift cannot; write one such as nearest-even or down."
        )
    if shift_bits <= 0:
        return accumulator << -shift_bits
    down = accumulator >> shift_bits
    rest, half = accumulator - (down << shift_bits), 1 << (shift_bits - 1)
    goes_up = {
        Rounding.DOWN: rest < 0,
        Rounding.UP: rest > 0,
        Rounding.TOWARD_ZERO: (rest > 0) & (accumulator < 0),
        Rounding.NEAREST_EVEN: (rest > half) | ((rest == half) & (down % 2 == 1)),
        Rounding.NEAREST_AWAY: (rest > half) | ((rest == half) & (accumulator >= 0)),
        Rounding.NEAREST_ZERO: (rest > half) | ((rest == half) & (accumulator < 0)),
        Rounding.ODD: (rest > 0) & (down % 2 == 0),
    }
    return down + goes_up[rounding]
