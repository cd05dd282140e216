"""Errors of a power grid, its exponent learned by gradient steps, and products of its codes on whole numbers."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.numerics.adam import Adam
from orrery.numerics.power_exponent import MAX_EXPONENT, MIN_EXPONENT, codes_of, highest, values_of

Ints = NDArray[np.int64]


def round_trip_error(x: ArrayLike, bits: int, exponent: float) -> float:
    """The sum of squared errors of ``x`` on that grid."""
    codes, scale = codes_of(x, bits, exponent)
    return float(np.square(values_of(codes, scale, bits, exponent) - np.asarray(x, dtype=np.float64)).sum())


def learned_exponent(x: ArrayLike, bits: int, *, start: float = 1.0, num_steps: int = 200, rate: float = 0.02) -> float:
    """The exponent that gradient steps on the squared error end at.

    With u = |x| / scale and q = round(highest u^a) / highest taken as u^a in slopes, the value v = q^(1/a) changes by
    v (u^a ln u / q - ln q / a) / a. Where q is 0 the value is 0 for any exponent.
    """
    exact = np.asarray(x, dtype=np.float64)
    scale = codes_of(exact, bits, start)[1]
    share = np.abs(exact) / scale
    logs = np.log(np.where(share > 0, share, 1.0))
    moving, exponent = Adam(rate), start
    for i in range(num_steps):
        power = share**exponent
        level = np.rint(highest(bits) * power) / highest(bits)
        seen = np.where(level > 0, level, 1.0)
        value = np.where(level > 0, seen ** (1.0 / exponent), 0.0)
        slope = value * (power * logs / seen - np.log(seen) / exponent) / exponent
        gradient = np.asarray(((value - share) * slope * scale**2).sum())
        exponent -= float(moving.step(gradient)) * (1.0 - i / num_steps)
        exponent = min(max(exponent, MIN_EXPONENT), MAX_EXPONENT)
    return exponent


def product_table(bits: int, exponent: float, fraction_bits: int) -> Ints:
    """Value of every product of two code magnitudes, in steps of 2^-fraction_bits of both scales' product."""
    products = np.arange(highest(bits) ** 2 + 1) / highest(bits) ** 2
    return np.rint(np.ldexp(products ** (1.0 / exponent), fraction_bits)).astype(np.int64)


def integer_product(x: Ints, weights: Ints, table: Ints) -> Ints:
    """x W^T of codes (points, in) and (out, in), by whole numbers alone: multiply codes, look up, add."""
    products = x[:, None, :] * weights
    return (np.sign(products) * table[np.abs(products)]).sum(axis=-1)
