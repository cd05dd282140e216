"""Dyadic numbers b / 2^c: scales that a processor without floats applies by one multiplication and one shift.

An INT32 sum becomes a narrow code as round(sum * b / 2^c), in a 64-bit product; halves round up, as the added
2^(c - 1) makes them. Yao et al. 2021, "HAWQ-V3: Dyadic Neural Network Quantization", section 3.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.base.knobs import check_range

Array = NDArray[Any]
Int32 = NDArray[np.int32]

MULTIPLIER_BITS = 31
"""Bits of the multiplier b: a 32-bit sum times b stays within 62 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dyadic:
    """The number multiplier / 2^shift."""

    multiplier: int  # 0 <= b < 2^31
    shift: int  # 1 <= c <= 62

    def __post_init__(self) -> None:
        if not (0 <= self.multiplier < 1 << MULTIPLIER_BITS and 1 <= self.shift <= 62):
            raise ScenarioError(f"{self.multiplier} / 2^{self.shift}; write 0 <= b < 2^31 and 1 <= c <= 62.")

    @property
    def value_ratio(self) -> float:
        """As a float, exactly."""
        return math.ldexp(self.multiplier, -self.shift)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequantiseKnobs:
    """Bits of the codes that come out."""

    num_bits: int = 8

    def __post_init__(self) -> None:
        check_range(self, "num_bits", 2, 16)


def nearest_dyadic(scale_ratio: float, num_bits: int = MULTIPLIER_BITS) -> Dyadic:
    """The dyadic number of ``num_bits`` significant bits nearest to a positive scale; OutOfRange where none is near."""
    if not scale_ratio > 0.0:
        raise ScenarioError(f"A scale of {scale_ratio:g}; write more than 0.")
    fraction, exponent = math.frexp(scale_ratio)  # fraction in [1/2, 1)
    multiplier, shift = round(math.ldexp(fraction, num_bits)), num_bits - exponent
    while multiplier >= 1 << num_bits or (shift > 62 and multiplier):
        multiplier, shift = multiplier >> 1, shift - 1
    if not (shift >= 1 and multiplier):
        raise OutOfRange(f"No dyadic number of {num_bits} bits is near {scale_ratio:g}; scale the operands instead.")
    return Dyadic(multiplier=multiplier, shift=shift)


def requantise(sums: Array, scale: Dyadic, num_bits: int = 8) -> Int32:
    """INT32 sums in steps of another scale: multiplied, shifted with rounding, and cut to symmetric codes."""
    most = (1 << (num_bits - 1)) - 1
    product = sums.astype(np.int64) * scale.multiplier
    return np.clip((product + (1 << (scale.shift - 1))) >> scale.shift, -most, most).astype(np.int32)
