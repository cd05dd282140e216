"""Exponentials as kernels compute them: a float pair that cannot overflow, a polynomial in integers, shifts alone.

``extended_exp``: e^x = m * 2^n with n = round(x log2 e) and m a polynomial of the rest, m in [0.7, 1.42], both kept as
float32 (Dukhan and Ablavatski 2020, section 4). The polynomial is of degree 5, as theirs is as recalled, through the
Chebyshev points of |t| <= ln2 / 2: off by less than 1e-7.

``polynomial_exp``: for x <= 0, e^x = 2^-z * L(p) with z = floor(-x / ln2), p = x + z ln2 in (-ln2, 0] and
L(p) = 0.3585 (p + 1.353)^2 + 0.344 (Kim et al. 2021, I-BERT, section 3.5).

``shift_exp``: for x <= 0, e^x = 2^(x log2 e) with log2 e ~ 1.0111 in binary (1 + 1/2 - 1/16), and 2^-r ~ 1 - r/2 for
the fractional part r (Li and Gu 2023, I-ViT, section 3.3).
"""

import math
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray

Array = NDArray[Any]

LOG2_E = np.float32(math.log2(math.e))
LN2_HIGH = np.float32(0.693359375)  # ln 2 to 9 bits: its product with an exponent below 2^15 is exact
LN2_LOW = np.float32(math.log(2.0) - 0.693359375)
REST = Chebyshev.interpolate(np.exp, 5, domain=[-math.log(2.0) / 2.0, math.log(2.0) / 2.0])
COEFFICIENTS = tuple(np.float32(c) for c in reversed(REST.convert(kind=Polynomial).coef))  # highest power first

A, B, C = 0.3585, 1.353, 0.344  # of I-BERT's polynomial


def extended_exp(x: Array) -> tuple[Array, Array]:
    """Mantissa and exponent of e^x, both float32: m * 2^n. Finite for every x of magnitude below 2^14."""
    exponent = np.rint(x * LOG2_E)
    rest = (x - exponent * LN2_HIGH) - exponent * LN2_LOW
    mantissa = rest * COEFFICIENTS[0] + COEFFICIENTS[1]
    for coefficient in COEFFICIENTS[2:]:
        mantissa = mantissa * rest + coefficient
    return mantissa, exponent


def scaled(mantissa: Array, exponent: Array) -> Array:
    """m * 2^n as one float32; what is too small becomes zero, as kernels flush it."""
    return np.ldexp(mantissa, exponent.astype(np.int32))


def polynomial_exp(x: Array, step_ratio: float, num_bits: int) -> tuple[Array, float]:
    """Codes of e^x for integer codes x <= 0, and their step; ``num_bits`` are shifted in so that small values stay.

    Constants of the step (ln 2, b, c) are prepared off-line as integers; the rest is integer arithmetic.
    """
    ln2 = max(1, math.floor(math.log(2.0) / step_ratio))
    b = math.floor(B / step_ratio)
    c = math.floor(C / (A * step_ratio**2))
    x = np.maximum(x, -num_bits * ln2)
    halvings = -x // ln2
    rest = x + halvings * ln2 + b
    return (rest * rest + c) << (num_bits - halvings), A * step_ratio**2 / 2.0**num_bits


def shift_exp(x: Array, step_ratio: float, num_bits: int) -> tuple[Array, float]:
    """Codes of e^x for integer codes x <= 0, and their step, by shifts, adds and one integer division."""
    one = math.ceil(1.0 / step_ratio)  # the code of 1
    x = x + (x >> 1) - (x >> 4)
    x = np.maximum(x, -num_bits * one)
    halvings = -x // one
    rest = x + halvings * one  # in (-one, 0]
    return ((rest >> 1) + one) << (num_bits - halvings), 1.0 / (one * 2.0**num_bits)
