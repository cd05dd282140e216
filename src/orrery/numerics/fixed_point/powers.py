"""Whole numbers as a few signed powers of two, so that a product is a few shifts and no multiplier.

Each term is the power nearest to what the terms before have left. Three terms are every 8-bit number that has three
signed digits; one term is a shift. (The K-hot mode of QFX, arXiv 2401.17544; additive powers of two.)
"""

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def terms(codes: Ints, num_powers: int) -> tuple[Ints, Ints]:
    """Signs (0 where nothing is left) and exponents, (num_powers, *shape), of the powers that stand for ``codes``."""
    left, signs, exponents = codes.astype(np.int64), list[Ints](), list[Ints]()
    for _ in range(num_powers):
        size = np.maximum(np.abs(left), 1)
        down = np.frexp(size.astype(np.float64))[1].astype(np.int64) - 1
        exponent = down + (2 * size > 3 << down)  # nearer to the next power than to this one
        sign = np.sign(left)
        signs.append(sign)
        exponents.append(exponent)
        left = left - sign * (1 << exponent)
    return np.array(signs), np.array(exponents)


def few_powers(codes: Ints, num_powers: int) -> Ints:
    """The sums of so many signed powers of two that stand for ``codes``."""
    signs, exponents = terms(codes, num_powers)
    return (signs * (1 << exponents)).sum(axis=0)


def shift_add(x: Ints, weights: Ints, num_powers: int) -> Ints:
    """x W^T by shifts and additions only, for (points, in) and (out, in) whose codes are that few powers."""
    signs, exponents = terms(weights, num_powers)
    total = np.zeros((len(x), len(weights)), dtype=np.int64)
    for i in range(weights.shape[1]):
        for sign, exponent in zip(signs[:, :, i], exponents[:, :, i], strict=True):
            moved = x[:, i, None] << exponent
            total += np.where(sign > 0, moved, np.where(sign < 0, -moved, 0))
    return total
