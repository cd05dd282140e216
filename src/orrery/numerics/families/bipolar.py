"""Bipolar integers: "bipolar2" is -3, -1, 1, 3; every bit counts +1 or -1 times its power of two, and there is no zero.

value = 2 code - (2^bits - 1). Products of two such numbers are sums of exclusive-ors, without a sign to correct.
Ma et al., Efficient Arbitrary Precision Acceleration for Large Language Models on GPU Tensor Cores.
"""

import re
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.numerics.element import Floats, GridElement

_NAME = re.compile(r"bipolar(\d+)")


@dataclass(frozen=True, kw_only=True)
class Bipolar(GridElement):
    """Odd whole numbers from -(2^bits - 1) to 2^bits - 1."""

    name: str
    bits: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= 12:
            raise OutOfRange(f"{self.name}: write 1 to 12 bits.")

    def values(self) -> Floats:
        """Every code's value."""
        return 2.0 * np.arange(1 << self.bits, dtype=np.float64) - ((1 << self.bits) - 1)


def read(name: str) -> Bipolar | None:
    """The bipolar format that ``name`` spells out; None where it spells something else."""
    found = _NAME.fullmatch(name)
    return Bipolar(name=name, bits=int(found[1])) if found else None
