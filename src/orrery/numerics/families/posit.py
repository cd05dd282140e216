"""Posits: "posit8_1" is 8 bits with one exponent bit. A run of equal bits, the regime, scales by 2^(2^es) a step.

Codes below zero are the two's complement of the positive ones; the most negative code is NaR, not a real. A number goes
to the posit whose bits it rounds to (ties to the even code), never to zero and never beyond the largest: the parting
value of two neighbours is the posit between them that one more bit would show. Standard for Posit Arithmetic (2022),
sections 3 and 4.
"""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.numerics.element import Floats, Grid, GridElement, grid_of

Ints = NDArray[np.int64]
_NAME = re.compile(r"posit(\d+)_(\d+)")


@dataclass(frozen=True, kw_only=True)
class Posit(GridElement):
    """A posit of ``bits`` with ``exponent_bits``."""

    name: str
    bits: int
    exponent_bits: int

    prefers_scale = False  # most of its precision lies about one, and its range needs no help

    def __post_init__(self) -> None:
        if not (2 <= self.bits <= 16 and 0 <= self.exponent_bits <= 4):
            raise OutOfRange(f"{self.name}: write 2 to 16 bits and 0 to 4 exponent bits.")

    def values(self) -> Floats:
        """Every code's value; NaR is not a number."""
        half = 1 << (self.bits - 1)
        positive = posit_values(np.arange(half), self.bits, self.exponent_bits)
        return np.concatenate([positive, [np.nan], -positive[:0:-1]])

    @cached_property
    def layout(self) -> Grid:
        """Parting values are the odd codes of one more bit; zero takes only zero."""
        half = 1 << (self.bits - 1)
        odd = np.arange(1, 2 * half - 1, 2)
        between = posit_values(odd, self.bits + 1, self.exponent_bits)
        between[0] = 0.0
        return grid_of(self.values(), np.concatenate([-between[::-1], between]))


def posit_values(codes: Ints, bits: int, exponent_bits: int) -> Floats:
    """The values of non-negative codes: 2^(regime 2^es + exponent) times one and a fraction."""
    width = bits - 1
    begins_with_one = codes >> (width - 1) == 1
    after_run = np.frexp(np.where(begins_with_one, ~codes & ((1 << width) - 1), codes))[1]  # bits of it
    run = width - after_run
    regime = np.where(begins_with_one, run - 1, -run)
    num_rest = np.maximum(after_run - 1, 0)  # the first bit behind the run ends it
    rest = (codes & ((1 << num_rest) - 1)) << exponent_bits
    fraction = (rest & ((1 << num_rest) - 1)) / (1 << num_rest)
    found = np.ldexp(1.0 + fraction, regime * (1 << exponent_bits) + (rest >> num_rest))
    return np.where(codes == 0, 0.0, found)


def read(name: str) -> Posit | None:
    """The posit that ``name`` spells out; None where it spells something else."""
    found = _NAME.fullmatch(name)
    return Posit(name=name, bits=int(found[1]), exponent_bits=int(found[2])) if found else None
