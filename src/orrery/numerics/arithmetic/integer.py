"""Pieces that the integer-only rules share: checked codes, shares of a sum, square roots. No float inside."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.base.knobs import check_range
from orrery.numerics.arithmetic.computed import check_input

Array = NDArray[Any]

INT32_MOST = 2**31 - 1

FINEST_STEP_RATIO, COARSEST_STEP_RATIO = 2.0**-12, 0.25
"""Steps for which the constants of an exponential are integers of some worth and its codes stay within 60 bits."""

NEWTON_STARTS_AT, NUM_NEWTON_STEPS = 1 << 16, 10
"""The fixed loop of I-ViT's published code (github.com/zkkli/I-ViT, quant_modules.py)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpKnobs:
    """Bits of an integer exponential's range and of the result."""

    num_shift_bits: int = 15
    num_output_bits: int = 8

    def __post_init__(self) -> None:
        check_range(self, "num_shift_bits", 1, 24)
        check_range(self, "num_output_bits", 2, 16)


def codes(x: Array, step_ratio: float) -> NDArray[np.int64]:
    """Checked integer codes, in the 64-bit registers in which the rules compute."""
    check_input(x, step_ratio, is_integer=True)
    return x.astype(np.int64)


def check_step(step_ratio: float) -> None:
    """Refuse a step for which an integer exponential means nothing."""
    if not FINEST_STEP_RATIO <= step_ratio <= COARSEST_STEP_RATIO:
        raise OutOfRange(
            f"A step of {step_ratio:g} before an integer exponential; requantise to between {FINEST_STEP_RATIO:g} and "
            f"{COARSEST_STEP_RATIO:g}."
        )


def share(part: Array, whole: Array, num_bits: int) -> Array:
    """part / whole in steps of 2^-num_bits, rounded down, by one reciprocal of the whole: 0 <= part <= whole < 2^62."""
    return np.minimum((part * ((1 << 62) // whole)) >> (62 - num_bits), (1 << num_bits) - 1)


def newton_root(n: Array) -> Array:
    """floor(sqrt(n)) for n >= 1, by Newton's steps from above until none goes lower (I-BERT, algorithm 4)."""
    root = n * 0 + (1 << ((int(np.asarray(n).max()).bit_length() + 1) // 2))
    while True:
        lower = (root + n // root) >> 1
        if np.asarray(lower >= root).all():
            return root
        root = np.minimum(root, lower)


def fixed_newton_root(n: Array) -> Array:
    """About sqrt(n), by ten Newton steps from 2^16: far too large where the root is below some 2^8 (I-ViT)."""
    root = n * 0 + NEWTON_STARTS_AT
    for _ in range(NUM_NEWTON_STEPS):
        root = (root + n // root) >> 1
    return root


def bitwise_root(n: Array) -> Array:
    """floor(sqrt(n)) for 0 <= n < 2^62, one binary digit at a time: compare, subtract, shift, and no division."""
    rest, root = n, n * 0
    for position in range(60, -1, -2):
        tried = root + (1 << position)
        taken = -(rest >= tried).astype(np.int64)  # all bits set where the digit is one
        rest = rest - (tried & taken)
        root = (root >> 1) + (taken & (1 << position))
    return root
