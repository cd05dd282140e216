"""Where values may come to lie: the rounding that every recipe is given, and never knows more about.

A grid is fitted to an array once, which settles its scales; what is fitted then rounds any values that stand in the
same places. Error-compensated and learned rounding need that split: scales stay, values move.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.floating[Any]]

Towards = Literal["nearest", "below", "above"]
"""To the point beside a value, or to the next one on one side of it; beyond the ends of a grid, its end."""


class Element(Protocol):
    """The points that one element may take before it is scaled."""

    def __call__(self, values: Floats, towards: Towards) -> Floats:
        """Each value's point, in float32."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A grid settled for the places of one array: ``origin`` plus ``scale`` times the element's points."""

    scale: Floats  # in the array's shape, positive
    element: Element
    origin: Floats | None = None  # in the array's shape; None: the grid lies about zero

    def round(self, values: Floats, towards: Towards = "nearest") -> Floats:
        """The values on the grid."""
        if self.origin is None:
            return (self.element(values / self.scale, towards) * self.scale).astype(np.float32)
        points = self.element((values - self.origin) / self.scale, towards)
        return (points * self.scale + self.origin).astype(np.float32)

    def columns(self, at: slice | NDArray[np.intp]) -> "Fitted":
        """The same grid for some columns of the array, or all of them in another order."""
        origin = None if self.origin is None else self.origin[:, at]
        return replace(self, scale=self.scale[:, at], origin=origin)

    def where(self, chosen: NDArray[np.bool_], other: "Fitted") -> "Fitted":
        """This grid at the chosen places, the other one elsewhere."""
        scale = np.where(chosen, self.scale, other.scale)
        if self.origin is None or other.origin is None:
            return replace(self, scale=scale)
        return replace(self, scale=scale, origin=np.where(chosen, self.origin, other.origin))

    def with_scale(self, scale: Floats) -> "Fitted":
        """The same points about zero under other scales."""
        if self.origin is not None:
            raise ScenarioError("recipes: scales of a format with zero points cannot be set alone; write one without.")
        return replace(self, scale=scale)


class Grid(Protocol):
    """A number format in use: what it takes, and how its scales follow from an array."""

    @property
    def bits_per_element(self) -> float:
        """Storage, scales included."""
        ...

    def fit(self, values: Floats, clip_ratio: float = 1.0) -> Fitted:
        """Scales for an array (rows, width), its largest magnitudes taken as ``clip_ratio`` of what they are."""
        ...

    def shared_sum(self, values: Floats) -> Floats:
        """Every element replaced by the sum over all those that share its scale."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Around:
    """Another grid, fitted in a way of its own; its storage and its sharing are the other grid's."""

    grid: Grid

    @property
    def bits_per_element(self) -> float:
        """Storage, scales included; what narrower scales could save is not counted."""
        return self.grid.bits_per_element

    def shared_sum(self, values: Floats) -> Floats:
        """Every element replaced by the sum over all those that share its scale."""
        return self.grid.shared_sum(values)
