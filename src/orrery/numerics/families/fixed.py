"""Integers and fixed point: "int8", "int4sym", "uint4", "fixed8_6" (8 bits, 6 of them after the binary point).

A signed code is two's complement; value = code / 2^fraction_bits. ``sym`` leaves the lowest code out, so that the
grid is symmetric about zero.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.numerics.element import MAX_TABULATED_BITS, Element, Floats, Ladder

_NAME = re.compile(r"(u?)int(\d+)(sym)?|(u?)fixed(\d+)_(-?\d+)(sym)?")

MAX_FP32_BITS = 24
"""Most bits of whole numbers that FP32 holds exactly."""

CONSTANT_SPACING = 1 << 20
"""An exponent that no number reaches: the spacing never changes."""


@dataclass(frozen=True, kw_only=True)
class Fixed(Element):
    """Whole numbers over 2^fraction_bits."""

    name: str
    bits: int
    fraction_bits: int = 0
    is_signed: bool = True
    is_symmetric: bool = False

    def __post_init__(self) -> None:
        if not (1 + self.is_signed <= self.bits <= 32 and -64 <= self.fraction_bits <= 64):
            raise OutOfRange(f"{self.name}: write {1 + self.is_signed} to 32 bits, -64 to 64 after the point.")

    @property
    def highest_code(self) -> int:
        """The largest whole number."""
        return (1 << (self.bits - self.is_signed)) - 1

    @property
    def lowest_code(self) -> int:
        """The smallest whole number."""
        return -(self.highest_code + (not self.is_symmetric)) if self.is_signed else 0

    @cached_property
    def highest(self) -> float:
        """The largest value."""
        return self.highest_code * 2.0**-self.fraction_bits

    @cached_property
    def layout(self) -> Ladder:
        """Constant spacing; what lies outside saturates."""
        highest, lowest = self.highest, self.lowest_code * 2.0**-self.fraction_bits
        return Ladder(
            min_exponent=CONSTANT_SPACING,
            mantissa_bits=0,
            sub_exponent=-self.fraction_bits,
            highest=highest,
            lowest=lowest,
            above=highest,
            below=lowest,
            nan_as=0.0,
            has_negative_zero=False,
        )

    def values(self) -> Floats:
        """Every code's value; the code that ``sym`` leaves out stands for the one above it."""
        if self.bits > MAX_TABULATED_BITS:
            raise OutOfRange(f"{self.name} has 2^{self.bits} codes: too many to list.")
        codes = np.arange(1 << self.bits, dtype=np.float64)
        if self.is_signed:
            codes[1 << (self.bits - 1) :] -= 1 << self.bits
        return np.maximum(codes, self.lowest_code) * 2.0**-self.fraction_bits


def read(name: str) -> Fixed | None:
    """The integer or fixed-point format that ``name`` spells out; None where it spells something else."""
    if not (found := _NAME.fullmatch(name)):
        return None
    unsigned_int, int_bits, int_sym, unsigned, bits, fraction, sym = found.groups()
    return Fixed(
        name=name,
        bits=int(int_bits or bits),
        fraction_bits=int(fraction or 0),
        is_signed=not (unsigned_int or unsigned),
        is_symmetric=bool(int_sym or sym),
    )
