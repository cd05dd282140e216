"""State of a tensor on a device of a mesh: a slice, a copy, or a term of its sum. [oneflow-2021]

Over each axis of a mesh of devices a tensor is in one of three states: split along one of its own axes, broadcast
(every device holds it whole), or partial (every device holds an array of the whole shape, and the tensor is their
sum). A placement is one state for each axis of the mesh, the outermost first.
"""

import math
from dataclasses import dataclass
from typing import Literal

Kind = Literal["split", "broadcast", "partial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One of the three, over one axis of a mesh; ``axis`` is the tensor's own axis that is cut."""

    kind: Kind
    axis: int = -1

    @property
    def is_split(self) -> bool:
        """Whether devices hold different slices."""
        return self.kind == "split"

    @property
    def dual(self) -> "State":
        """The state of the gradient: copies each add a term, terms each see the same gradient, slices stay slices."""
        return {"split": self, "broadcast": PARTIAL, "partial": BROADCAST}[self.kind]

    def __str__(self) -> str:
        return f"S({self.axis})" if self.is_split else self.kind[0].upper()


BROADCAST, PARTIAL = State(kind="broadcast"), State(kind="partial")

Placement = tuple[State, ...]


def split(axis: int) -> State:
    """Cut along the tensor's ``axis``.

    >>> str(split(1)), str(split(1).dual), str(BROADCAST.dual)
    ('S(1)', 'S(1)', 'P')
    """
    return State(kind="split", axis=axis)


def dual(placement: Placement) -> Placement:
    """The placement of the gradient of a tensor that is placed so."""
    return tuple(state.dual for state in placement)


def num_slices(placement: Placement, mesh_shape: tuple[int, ...], axis: int | None = None) -> int:
    """Into how many slices a tensor is cut, along one of its axes or along all of them.

    >>> num_slices((split(0), split(1)), (2, 4)), num_slices((split(0), split(1)), (2, 4), axis=1)
    (8, 4)
    """
    retained = (n for s, n in zip(placement, mesh_shape, strict=True) if s.is_split and axis in (None, s.axis))
    return math.prod(retained)


def local_shape(shape: tuple[int, ...], placement: Placement, mesh_shape: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of what one device holds."""
    return tuple(size // num_slices(placement, mesh_shape, axis) for axis, size in enumerate(shape))
