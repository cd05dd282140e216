"""Any table of values: NF4, ternary, or one learned from a tensor.

Learned tables minimise the squared error by Lloyd's iteration: every number goes to its nearest value, every value to
the mean of its numbers (Lloyd 1982; used for weights by Deep Compression, arXiv:1510.00149).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.element import Floats, GridElement


@dataclass(frozen=True, kw_only=True)
class Lookup(GridElement):
    """``table`` lists the values by code; codes beyond it stand for its last value."""

    name: str
    bits: int
    table: tuple[float, ...]

    def __post_init__(self) -> None:
        if not (1 <= self.bits <= 12 and 2 <= len(self.table) <= 1 << self.bits):
            raise OutOfRange(f"{self.name}: write 1 to 12 bits and 2 to 2^bits values.")
        if not (np.isfinite(self.table).all() and max(self.table) > 0):
            raise OutOfRange(f"{self.name}: write finite values of which one is above zero.")

    def values(self) -> Floats:
        """Every code's value."""
        table = np.array(self.table)
        return np.concatenate([table, np.full((1 << self.bits) - len(table), table[-1])])


def learned(sample: ArrayLike, bits: int, iterations: int = 50) -> Lookup:
    """The table of 2^bits values with the least squared error on ``sample``, started from its quantiles."""
    numbers = np.sort(np.asarray(sample, dtype=np.float64).ravel())
    if numbers.size < 1 << bits or not np.isfinite(numbers).all():
        raise ScenarioError(f"A table of {1 << bits} values is learned from as many finite numbers or more.")
    sums = np.concatenate([[0.0], np.cumsum(numbers)])
    table = np.unique(np.quantile(numbers, (np.arange(1 << bits) + 0.5) / (1 << bits)))
    for _ in range(iterations):
        ends = np.concatenate([[0], np.searchsorted(numbers, (table[1:] + table[:-1]) / 2.0), [numbers.size]])
        counts = np.diff(ends)
        new = np.where(counts > 0, np.diff(sums[ends]) / np.maximum(counts, 1), table)
        if np.array_equal(new, table):
            break
        table = np.unique(new)
    return Lookup(name=f"learned{bits}", bits=bits, table=tuple(table.tolist()))
