"""Powers: "pot4" has only powers of two, so that a product is a shift; "power4_0.5" spaces values as powers of codes.

pot: one code is zero, the others +-2^-k for k = 0, 1, …  (Zhou et al. 2017, incremental network quantisation).
power: |value| = (|code| / highest)^(1 / exponent), so that an exponent below one puts more levels where weights are
dense; |xy|^a = |x|^a |y|^a, so products of codes stay products (NUPES, Yvinec et al. 2023).
"""

import re
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.numerics.element import Floats, GridElement

_NAME = re.compile(r"pot(\d+)|power(\d+)_(\d*\.?\d+)")


@dataclass(frozen=True, kw_only=True)
class PowerOfTwo(GridElement):
    """Sign and exponent only: 0 and +-2^-k, k below 2^(bits - 1) - 1."""

    name: str
    bits: int

    def __post_init__(self) -> None:
        if not 2 <= self.bits <= 8:
            raise OutOfRange(f"{self.name}: write 2 to 8 bits.")

    def values(self) -> Floats:
        """Code 0 is zero, code c is 2^(c - highest code); the sign is the first bit."""
        half = 1 << (self.bits - 1)
        magnitudes = np.concatenate([[0.0], 2.0 ** (np.arange(1, half) - (half - 1.0))])
        return np.concatenate([magnitudes, -magnitudes])


@dataclass(frozen=True, kw_only=True)
class PowerExponent(GridElement):
    """Signed whole numbers k of ``bits``, standing for sign(k) (|k| / highest)^(1 / exponent)."""

    name: str
    bits: int
    exponent: float

    def __post_init__(self) -> None:
        if not (2 <= self.bits <= 8 and 0.05 <= self.exponent <= 2.0):
            raise OutOfRange(f"{self.name}: write 2 to 8 bits and an exponent of 0.05 to 2.")

    def values(self) -> Floats:
        """Every code's value, two's complement; the lowest code, which has no opposite, stands for the one above it."""
        half = 1 << (self.bits - 1)
        codes = np.concatenate([np.arange(half), [1 - half], np.arange(1 - half, 0)])
        return np.sign(codes) * (np.abs(codes) / (half - 1.0)) ** (1.0 / self.exponent)


def read(name: str) -> PowerOfTwo | PowerExponent | None:
    """The format that ``name`` spells out; None where it spells something else."""
    if not (found := _NAME.fullmatch(name)):
        return None
    if found[1]:
        return PowerOfTwo(name=name, bits=int(found[1]))
    return PowerExponent(name=name, bits=int(found[2]), exponent=float(found[3]))
