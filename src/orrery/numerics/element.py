"""Element formats: codes, and the values that they stand for.

An element is either a ``Ladder`` (spacing constant, or doubling with every power of two: floats, integers, fixed point)
or a ``Grid`` (any list of values: posits, powers, lookup tables). Both are plain numbers; ``orrery.numerics.codec``
rounds onto them.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_TABULATED_BITS = 16
"""Wider elements have no table of values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """Values m * 2^q: q = e - mantissa_bits for magnitudes of binade e >= min_exponent, ``sub_exponent`` below it.

    ``above`` and ``below`` are what a result beyond ``highest`` or ``lowest`` becomes where nothing saturates.
    """

    min_exponent: int
    mantissa_bits: int
    sub_exponent: int
    highest: float
    lowest: float
    above: float
    below: float
    nan_as: float  # what not-a-number becomes
    has_negative_zero: bool = True


@dataclass(frozen=True, eq=False, kw_only=True)
class Grid:
    """Values in ascending order with their codes; ``thresholds[i]`` parts value i from value i + 1.

    A number on a threshold goes up where ``tie_goes_up`` says so.
    """

    values: Floats
    codes: NDArray[np.int64]
    thresholds: Floats
    tie_goes_up: NDArray[np.bool_]


class Element(ABC):
    """One element format: ``bits`` wide, ``name`` as typed, and how its values lie."""

    name: str
    bits: int
    prefers_scale = True  # whether a tensor is scaled onto it where nobody says otherwise

    @cached_property
    @abstractmethod
    def highest(self) -> float:
        """The largest finite value; what the largest magnitude of a scaled group is mapped to."""

    @cached_property
    @abstractmethod
    def layout(self) -> Ladder | Grid:
        """Layout of the values."""

    @abstractmethod
    def values(self) -> Floats:
        """The value of every code, in the order of codes: (2^bits,); up to 16 bits."""

    @property
    def has_nan(self) -> bool:
        """Whether some code is not a number."""
        return self.bits > MAX_TABULATED_BITS or bool(np.isnan(self.values()).any())


class GridElement(Element):
    """An element whose values are listed; ties go to the even code, to the upper one where both are even."""

    @cached_property
    def layout(self) -> Grid:
        """Sorted values, each with the lowest code that stands for it."""
        return grid_of(self.values())

    @cached_property
    def highest(self) -> float:
        """The largest finite value."""
        return float(np.nanmax(self.values()))


def grid_of(values: Floats, thresholds: Floats | None = None) -> Grid:
    """The grid of a table of values by code; ``thresholds`` lie half-way unless given."""
    finite = np.flatnonzero(np.isfinite(values))
    order = finite[np.argsort(values[finite], kind="stable")]
    retained = order[np.concatenate([[True], np.diff(values[order]) > 0])]
    ordered = values[retained]
    middle: Floats = ordered[:-1] + (ordered[1:] - ordered[:-1]) / 2.0 if thresholds is None else thresholds
    return Grid(values=ordered, codes=retained, thresholds=middle, tie_goes_up=retained[1:] % 2 == 0)
