"""Result of every rule of this folder: codes, the value of one step, and the operations used."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.arithmetic.ledger import Ledger

Array = NDArray[Any]
Floats = NDArray[np.float64]

MAX_BITS = 20
"""Integer codes of more bits could overflow the 64-bit registers of the emulation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A result in a number format of its own: value = code * step."""

    codes: Array
    step_ratio: float  # what one step of a code is worth: the scale of integer results, 1 for floats
    ledger: Ledger

    @property
    def values(self) -> Floats:
        """The real numbers that are meant."""
        return self.codes.astype(np.float64) * self.step_ratio

    def num_memory_operations(self) -> float:
        """Elements read and written for every element of the result."""
        return (self.ledger.num_elements_read + self.ledger.num_elements_written) / self.codes.size

    def num_operations(self) -> float:
        """Arithmetic instructions for every element of the result."""
        return self.ledger.num_operations / self.codes.size


def check_input(x: Array, step_ratio: float, is_integer: bool) -> None:
    """Refuse what a rule cannot take: other types, no elements, codes too wide, steps that are not positive."""
    if not step_ratio > 0.0:
        raise ScenarioError(f"A step of {step_ratio:g} makes no scale; write more than 0.")
    if x.size == 0:
        raise ScenarioError(f"An array of shape {x.shape} has no elements.")
    if is_integer and not np.issubdtype(x.dtype, np.integer):
        raise ScenarioError(f"An integer-only rule got {x.dtype}; quantise first, to int8 or int16 codes.")
    if is_integer and int(np.abs(x.astype(np.int64)).max()) >= 1 << (MAX_BITS - 1):
        raise OutOfRange(f"Codes go beyond {MAX_BITS} bits, where products overflow; requantise first.")
