"""From one placement to another: which collectives, over which bytes, and how long. [oneflow-2021]

Over one axis of p devices, for a tensor of T bytes, in bytes that all devices send together:

    S(i) -> B   all-gather       (p - 1) T          P -> S(i)   reduce-scatter   (p - 1) T
    S(i) -> S(j) all-to-all      (p - 1) / p T      P -> B      all-reduce       2 (p - 1) T
    B -> S(i), B -> P, S(i) -> P  nothing: a device keeps its slice, or fills up with zeros

On a mesh of several axes the outer axis cuts first. An outer axis can only begin or stop to cut a tensor's axis while
no inner axis cuts the same one, so an inner cut is gathered before and made again after.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

from orrery.training.placement.mesh import Mesh
from orrery.training.placement.state import BROADCAST, Placement, State, num_slices

COLLECTIVES = {
    ("split", "broadcast"): "all_gather",
    ("partial", "split"): "reduce_scatter",
    ("split", "split"): "all_to_all",
    ("partial", "broadcast"): "all_reduce",
}
"""Changes of state that cost a collective; the others cost nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One change of state over one axis of the mesh; ``held`` are the states of all axes before it."""

    mesh_axis: int
    before: State
    after: State
    held: Placement

    @property
    def collective(self) -> str:
        """The needed collective; empty where there is none."""
        return COLLECTIVES.get((self.before.kind, self.after.kind), "")

    def message_bytes(self, tensor_bytes: float, mesh_shape: tuple[int, ...]) -> float:
        """The buffer, as collectives count it: what a device holds at the end of a gather, else at the start."""
        held = self.held if self.collective != "all_gather" else _with(self.held, self.mesh_axis, BROADCAST)
        return tensor_bytes / num_slices(held, mesh_shape)


def orders(before: Placement, after: Placement) -> Iterator[tuple[Step, ...]]:
    """Every order in which the axes of the mesh can change, as steps; one empty order where nothing changes."""
    changed = [axis for axis, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    for order in permutations(changed):
        yield tuple(_steps(before, after, order))


def _steps(before: Placement, after: Placement, order: tuple[int, ...]) -> Iterator[Step]:
    held = before
    pending = list(order)
    while pending:
        axis = pending.pop(0)
        begun_or_ended = {s.axis for s in (held[axis], after[axis]) if s.is_split}
        inner = [i for i in range(axis + 1, len(held)) if held[i].is_split and held[i].axis in begun_or_ended]
        for i in reversed(inner):
            yield Step(mesh_axis=i, before=held[i], after=BROADCAST, held=held)
            held = _with(held, i, BROADCAST)
            pending = [*pending, i] if i not in pending else pending
        if held[axis] != after[axis]:
            yield Step(mesh_axis=axis, before=held[axis], after=after[axis], held=held)
            held = _with(held, axis, after[axis])


def _with(placement: Placement, axis: int, state: State) -> Placement:
    return (*placement[:axis], state, *placement[axis + 1 :])


def steps_s(steps: tuple[Step, ...], tensor_bytes: float, mesh: Mesh) -> float:
    """How long the steps take in turn."""
    return sum(
        mesh.exchange_s(x.collective, x.mesh_axis, x.message_bytes(tensor_bytes, mesh.shape))
        for x in steps
        if x.collective and mesh.shape[x.mesh_axis] > 1
    )


def cheapest(before: Placement, after: Placement, tensor_bytes: float, mesh: Mesh) -> tuple[Step, ...]:
    """The order of steps that takes the least time."""
    return min(orders(before, after), key=lambda steps: steps_s(steps, tensor_bytes, mesh))


def conversion_s(before: Placement, after: Placement, tensor_bytes: float, mesh: Mesh) -> float:
    """How long the change takes in the cheapest order of the mesh's axes."""
    return steps_s(cheapest(before, after, tensor_bytes, mesh), tensor_bytes, mesh)
