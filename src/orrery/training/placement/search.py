"""The cheapest placement of a graph on a mesh, forward, backward and update, within a memory limit. [oneflow-2021]

Every operator chooses a signature, every input a placement. A value that comes out in one placement and is needed in
another is converted, and its gradient back the other way. A weight stays where it is used, so what is broadcast gets
its gradients summed over the devices: data parallelism, tensor parallelism and their mixtures all are such choices.
With ``gathers_weights`` a weight may be stored cut and put together for each pass, as fully sharded training does.

Times are added up in turn: nothing overlaps. A memory limit is met by a price on bytes, raised until the plan fits;
plans found so are the cheapest for their own memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.training.placement.conversion import conversion_s
from orrery.training.placement.cost import STATE_BYTES, OpCost, op_cost, update_s
from orrery.training.placement.eliminate import Table, minimise
from orrery.training.placement.graph import Graph, Op, Tensor
from orrery.training.placement.mesh import Mesh
from orrery.training.placement.signature import (
    MeshSignature,
    input_placement,
    mesh_signatures,
    output_placement,
)
from orrery.training.placement.state import BROADCAST, Placement, dual, num_slices, split

PRICE_STEPS = 40
"""Halvings of the interval in which the price of a byte lies: enough for every bit that matters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Signatures of the operators and placements of inputs and stored weights, with their time and memory."""

    signatures: dict[str, MeshSignature]
    inputs: dict[str, Placement]
    weights: dict[str, Placement]
    compute_s: float
    inner_s: float  # sums inside cut norms and losses
    conversion_s: float  # values and their gradients
    weights_s: float  # gradients summed, weights gathered
    update_s: float
    weight_bytes: float  # of one device, with gradients and the optimizer's state

    @property
    def time_s(self) -> float:
        """All of it in turn."""
        return self.compute_s + self.inner_s + self.conversion_s + self.weights_s + self.update_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Problem:
    """A graph on a mesh, and what can be chosen; ``given`` are inputs whose placement is not."""

    graph: Graph
    mesh: Mesh
    gathers_weights: bool = False
    given: Mapping[str, Placement] = field(default_factory=dict[str, Placement])

    def signatures(self, op: Op) -> tuple[MeshSignature, ...]:
        """Possible signatures of an operator."""
        return mesh_signatures(op, self.graph, self.mesh.shape)

    def placements(self, tensor: Tensor) -> tuple[Placement, ...]:
        """Possible placements of an input, or of a weight that is gathered for use: cut or broadcast, never partial."""
        if tensor.name in self.given:
            return (self.given[tensor.name],)
        states = (BROADCAST, *(split(axis) for axis in range(len(tensor.letters))))
        found = product(states, repeat=len(self.mesh.shape))
        return tuple(p for p in found if self._divides(tensor, p))

    def _divides(self, tensor: Tensor, placement: Placement) -> bool:
        return all(
            self.graph.pieces[letter] % num_slices(placement, self.mesh.shape, axis) == 0
            for axis, letter in enumerate(tensor.letters)
        )

    def sources(self) -> tuple[Tensor, ...]:
        """Tensors whose placement is a choice of its own."""
        roles = ("input", "weight") if self.gathers_weights else ("input",)
        return tuple(t for t in self.graph.tensors.values() if t.role in roles)

    def producer(self, name: str) -> Op | None:
        """The operator that makes a tensor."""
        return next((op for op in self.graph.ops if op.output == name), None)

    def edge_s(self, tensor: Tensor, made: Placement, needed: Placement) -> float:
        """A value turned from one placement into another, and its gradient back."""
        forward_s = conversion_s(made, needed, tensor.bytes, self.mesh)
        if not tensor.has_gradient:
            return forward_s
        return forward_s + conversion_s(dual(needed), dual(made), tensor.bytes, self.mesh)

    def weight_s(self, weight: Tensor, stored: Placement, used: Placement) -> float:
        """Gathered for each of the two passes where it is stored otherwise, and its gradient brought home."""
        gathered_s = 2.0 * conversion_s(stored, used, weight.bytes, self.mesh)
        return gathered_s + conversion_s(dual(used), stored, weight.bytes, self.mesh)


def cheapest_plan(
    graph: Graph,
    mesh: Mesh,
    *,
    memory_limit_bytes: float = np.inf,
    gathers_weights: bool = False,
    given: Mapping[str, Placement] | None = None,
) -> Plan | Infeasible:
    """The cheapest plan whose weights, gradients and optimizer's state fit a device."""
    problem = Problem(graph=graph, mesh=mesh, gathers_weights=gathers_weights, given=given or {})
    sizes, tables = _tables(problem)
    plan = priced_plan(problem, sizes, tables, 0.0)
    if plan.weight_bytes <= memory_limit_bytes:
        return plan
    least_bytes = STATE_BYTES * graph.num_parameters / mesh.num_devices
    high = plan.time_s / least_bytes * 1e6
    best = priced_plan(problem, sizes, tables, high)
    if best.weight_bytes > memory_limit_bytes:
        return Infeasible(
            what="weights, gradients and optimizer state",
            need=best.weight_bytes,
            have=memory_limit_bytes,
            unit="bytes",
            smallest_change="Use a larger mesh, or devices with more memory.",
        )
    low = 0.0
    for _ in range(PRICE_STEPS):
        middle = np.sqrt(low * high) if low else high / 1e3
        if middle <= low or middle >= high:
            break
        tried = priced_plan(problem, sizes, tables, middle)
        if tried.weight_bytes <= memory_limit_bytes:
            high, best = middle, min(best, tried, key=lambda p: p.time_s)
        else:
            low = middle
    return best


def priced_plan(problem: Problem, sizes: dict[str, int], tables: list["Priced"], price_s_per_bytes: float) -> Plan:
    """The cheapest plan when every byte of a device's memory costs so many seconds."""
    _, values = minimise(sizes, [t.at(price_s_per_bytes) for t in tables])
    signatures = {op.name: problem.signatures(op)[values[op.name]] for op in problem.graph.ops}
    sources = {t.name: problem.placements(t)[values[t.name]] for t in problem.sources()}
    return account(problem, signatures, sources)


def account(problem: Problem, signatures: dict[str, MeshSignature], sources: dict[str, Placement]) -> Plan:
    """Cost of a choice of signatures and placements, part by part."""
    graph, mesh = problem.graph, problem.mesh
    costs = [op_cost(op, signatures[op.name], graph, mesh) for op in graph.ops]
    made = dict(sources) | {op.output: output_placement(signatures[op.name]) for op in graph.ops}
    stored: dict[str, Placement] = {}
    converted_s = weights_s = updated_s = held_bytes = 0.0
    for op, i, tensor in _operands(graph):
        needed = input_placement(signatures[op.name], i)
        if tensor.role == "weight":
            stored[tensor.name] = made.get(tensor.name, needed)
            slices = num_slices(stored[tensor.name], mesh.shape)
            weights_s += problem.weight_s(tensor, stored[tensor.name], needed)
            updated_s += update_s(tensor, slices, mesh)
            held_bytes += STATE_BYTES * tensor.num_elements / slices
        else:
            converted_s += problem.edge_s(tensor, made[tensor.name], needed)
    for value, following in graph.loops:
        converted_s += problem.edge_s(graph.tensors[value], made[value], made[following])
    inputs = {name: p for name, p in sources.items() if graph.tensors[name].role == "input"}
    return Plan(
        signatures=signatures,
        inputs=inputs,
        weights=stored,
        compute_s=sum(c.compute_s for c in costs),
        inner_s=sum(c.inner_s for c in costs),
        conversion_s=converted_s,
        weights_s=weights_s,
        update_s=updated_s,
        weight_bytes=held_bytes,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Priced:
    """A table of seconds, and the bytes that come with each choice of its first variable."""

    table: Table
    held_bytes: tuple[float, ...] = ()

    def at(self, price_s_per_bytes: float) -> Table:
        """Seconds with every byte at its price."""
        if not self.held_bytes or not price_s_per_bytes:
            return self.table
        priced = self.table.costs_s + price_s_per_bytes * np.array(self.held_bytes)
        return Table(variables=self.table.variables, costs_s=priced)


def _operands(graph: Graph) -> Iterator[tuple[Op, int, Tensor]]:
    for op in graph.ops:
        for i, name in enumerate(op.inputs):
            yield op, i, graph.tensors[name]


def _tables(problem: Problem) -> tuple[dict[str, int], list[Priced]]:
    """Number of values of every variable, and every cost as a table over one or two of them."""
    graph = problem.graph
    choices = {op.name: problem.signatures(op) for op in graph.ops}
    placements = {t.name: problem.placements(t) for t in problem.sources()}
    sizes = {name: len(x) for name, x in (*choices.items(), *placements.items())}
    tables = [_op_table(problem, op, choices[op.name]) for op in graph.ops]
    for op, i, tensor in _operands(graph):
        needed = [input_placement(chosen, i) for chosen in choices[op.name]]
        if tensor.role == "weight":
            tables.append(_weight_table(problem, op, tensor, needed, placements.get(tensor.name)))
        else:
            tables.append(_edge_table(problem, tensor, op.name, needed, choices, placements))
    for value, following in graph.loops:
        tensor = graph.tensors[value]
        tables.append(_edge_table(problem, tensor, following, list(placements[following]), choices, placements))
    return sizes, tables


def _op_table(problem: Problem, op: Op, chosen: tuple[MeshSignature, ...]) -> Priced:
    costs: list[OpCost] = [op_cost(op, c, problem.graph, problem.mesh) for c in chosen]
    return Priced(table=Table(variables=(op.name,), costs_s=np.array([c.total_s for c in costs])))


def _edge_table(
    problem: Problem,
    tensor: Tensor,
    consumer: str,
    needed: list[Placement],
    choices: dict[str, tuple[MeshSignature, ...]],
    placements: dict[str, tuple[Placement, ...]],
) -> Priced:
    maker = problem.producer(tensor.name)
    made = [output_placement(c) for c in choices[maker.name]] if maker else list(placements[tensor.name])
    known: dict[tuple[Placement, Placement], float] = {}
    for pair in product(dict.fromkeys(made), dict.fromkeys(needed)):
        known[pair] = problem.edge_s(tensor, *pair)
    costs_s = np.array([[known[a, b] for b in needed] for a in made])
    return Priced(table=Table(variables=(maker.name if maker else tensor.name, consumer), costs_s=costs_s))


def _weight_table(
    problem: Problem, op: Op, weight: Tensor, needed: list[Placement], placements: tuple[Placement, ...] | None
) -> Priced:
    """Over the operator alone where the weight stays with it, else over where it is stored and the operator."""
    mesh = problem.mesh

    def retained(placement: Placement) -> tuple[float, float]:
        slices = num_slices(placement, mesh.shape)
        return update_s(weight, slices, mesh), STATE_BYTES * weight.num_elements / slices

    if placements is None:
        seconds = [problem.weight_s(weight, p, p) + retained(p)[0] for p in needed]
        held = tuple(retained(p)[1] for p in needed)
        return Priced(table=Table(variables=(op.name,), costs_s=np.array(seconds)), held_bytes=held)
    table = np.array([[problem.weight_s(weight, p, used) + retained(p)[0] for p in placements] for used in needed])
    held = tuple(retained(p)[1] for p in placements)
    return Priced(table=Table(variables=(op.name, weight.name), costs_s=table), held_bytes=held)
