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

from orrery.base.errors import OutOfRange
from orrery.numerics.element import Floats, Grid, GridElement, grid_of

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
        positive = np.array([posit_value(code, self.bits, self.exponent_bits) for code in range(half)])
        return np.concatenate([positive, [np.nan], -positive[:0:-1]])

    @cached_property
    def layout(self) -> Grid:
        """Parting values are the odd codes of one more bit; zero takes only zero."""
        half = 1 << (self.bits - 1)
        odd = np.arange(1, 2 * half - 1, 2)
        between = np.array([posit_value(int(code), self.bits + 1, self.exponent_bits) for code in odd])
        between[0] = 0.0
        return grid_of(self.values(), np.concatenate([-between[::-1], between]))


def posit_value(code: int, bits: int, exponent_bits: int) -> float:
    """The value of a non-negative code."""
    if code == 0:
        return 0.0
    body = f"{code:0{bits - 1}b}"
    run = len(body) - len(body.lstrip(body[0]))
    regime = run - 1 if body[0] == "1" else -run
    rest = body[run + 1 :]
    exponent = int(rest[:exponent_bits].ljust(exponent_bits, "0") or "0", 2)
    fraction = rest[exponent_bits:]
    mantissa = 1.0 + (int(fraction, 2) / (1 << len(fraction)) if fraction else 0.0)
    return mantissa * 2.0 ** (regime * (1 << exponent_bits) + exponent)


def read(name: str) -> Posit | None:
    """The posit that ``name`` spells out; None where it spells something else."""
    found = _NAME.fullmatch(name)
    return Posit(name=name, bits=int(found[1]), exponent_bits=int(found[2])) if found else None
