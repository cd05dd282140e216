"""Execution of a plan: its operators run on slices of real arrays, one for each device of a simulated mesh.

The devices of a mesh are the entries of an object array of its shape. Conversions do to the slices what their
collectives do; operators see only what their device holds, and the small sums that a cut norm or loss takes. Putting
the result together must give what the whole computation gives: that is the proof of signatures and conversions.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.training.placement.conversion import Step, orders
from orrery.training.placement.graph import Graph, Op
from orrery.training.placement.search import Plan
from orrery.training.placement.signature import MeshSignature, input_placement, output_placement
from orrery.training.placement.state import BROADCAST, Placement, State

Array = NDArray[Any]
DeviceValues = dict[tuple[int, ...], Array]
"""Values on every device, by its place in the mesh."""

EPSILON = 1e-5
"""Keeps the norm of a constant row finite."""


def place(whole: Array, placement: Placement, mesh_shape: tuple[int, ...]) -> DeviceValues:
    """A whole array as the devices of a mesh hold it."""
    held: DeviceValues = dict.fromkeys(np.ndindex(mesh_shape), whole)
    return convert(held, (BROADCAST,) * len(mesh_shape), placement, mesh_shape)


def gather(held: DeviceValues, placement: Placement, mesh_shape: tuple[int, ...]) -> Array:
    """The whole array, as the first device knows it after a conversion to broadcast."""
    return convert(held, placement, (BROADCAST,) * len(mesh_shape), mesh_shape)[(0,) * len(mesh_shape)]


def convert(held: DeviceValues, before: Placement, after: Placement, mesh_shape: tuple[int, ...]) -> DeviceValues:
    """The same tensor in another placement."""
    for step in next(iter(orders(before, after))):
        held = _apply(step, held, mesh_shape)
    return held


def _apply(step: Step, held: DeviceValues, mesh_shape: tuple[int, ...]) -> DeviceValues:
    """One collective in every group along the step's axis of the mesh."""
    axis, changed = step.mesh_axis, dict[tuple[int, ...], Array]()
    for first in np.ndindex(mesh_shape):
        if first[axis]:
            continue
        places = [(*first[:axis], i, *first[axis + 1 :]) for i in range(mesh_shape[axis])]
        whole = _whole([held[at] for at in places], step.before)
        changed |= zip(places, _shared(whole, step.after, len(places)), strict=True)
    return changed


def _whole(pieces: list[Array], state: State) -> Array:
    if state.is_split:
        return np.concatenate(pieces, axis=state.axis)
    return np.sum(pieces, axis=0) if state.kind == "partial" else pieces[0]


def _shared(whole: Array, state: State, count: int) -> list[Array]:
    if state.is_split:
        return np.split(whole, count, axis=state.axis)
    if state.kind == "partial":
        return [whole, *(np.zeros_like(whole) for _ in range(count - 1))]
    return [whole] * count


def run(graph: Graph, plan: Plan, arrays: Mapping[str, Array], mesh_shape: tuple[int, ...]) -> dict[str, Array]:
    """Every value of the graph, computed in slices and put together; ``arrays`` are whole inputs and weights."""
    placed = {**plan.inputs, **plan.weights}
    held = {name: place(arrays[name], placed[name], mesh_shape) for name in placed}
    for op in graph.ops:
        chosen = plan.signatures[op.name]
        needed = [input_placement(chosen, i) for i in range(len(op.inputs))]
        operands = [convert(held[x], placed[x], p, mesh_shape) for x, p in zip(op.inputs, needed, strict=True)]
        held[op.output] = _run_op(op, chosen, operands, mesh_shape)
        placed[op.output] = output_placement(chosen)
    return {op.output: gather(held[op.output], placed[op.output], mesh_shape) for op in graph.ops}


def _run_op(op: Op, chosen: MeshSignature, operands: list[DeviceValues], mesh_shape: tuple[int, ...]) -> DeviceValues:
    """One operator on all devices; those among which its inner or indexed letter is cut are run as members of one."""
    rule = RULES.get(op.kind)
    if rule is None:
        raise ScenarioError(f"placement: no operator is called {op.kind!r}; known: {', '.join(RULES)}.")
    joined = [i for i, s in enumerate(chosen) if s.letter and s.letter in (op.inner, op.indexed)]
    result: DeviceValues = {}
    for first in np.ndindex(mesh_shape):
        if any(first[i] for i in joined):
            continue
        members = [_at(first, joined, index) for index in np.ndindex(tuple(mesh_shape[i] for i in joined))]
        results = rule(op, [[operand[at] for operand in operands] for at in members])
        result |= zip(members, results, strict=True)
    return result


def _at(first: tuple[int, ...], axes: list[int], index: tuple[int, ...]) -> tuple[int, ...]:
    place_ = list(first)
    for axis, i in zip(axes, index, strict=True):
        place_[axis] = i
    return tuple(place_)


def _matmul(op: Op, devices: list[list[Array]]) -> list[Array]:
    return [x @ weight for x, weight in devices]


def _add(op: Op, devices: list[list[Array]]) -> list[Array]:
    return [left + right for left, right in devices]


def _activation(op: Op, devices: list[list[Array]]) -> list[Array]:
    """GELU, by its tanh form."""
    return [0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))) for (x,) in devices]


def _norm(op: Op, devices: list[list[Array]]) -> list[Array]:
    """Mean and variance are sums over the members."""
    pieces = [x for (x,) in devices]
    width = sum(x.shape[1] for x in pieces)
    mean = sum(x.sum(axis=1, keepdims=True) for x in pieces) / width
    variance = sum(((x - mean) ** 2).sum(axis=1, keepdims=True) for x in pieces) / width
    return [(x - mean) / np.sqrt(variance + EPSILON) for x in pieces]


def _attention(op: Op, devices: list[list[Array]]) -> list[Array]:
    """Causal attention of whole heads and whole sequences; a head's query, key and value lie side by side."""
    assert op.heads is not None
    tokens, size = op.heads.sequence_tokens, op.heads.head_size
    results: list[Array] = []
    for (qkv,) in devices:
        parts = qkv.reshape(-1, tokens, qkv.shape[1] // (3 * size), 3, size)
        q, k, v = (parts[:, :, :, i].transpose(0, 2, 1, 3) for i in range(3))
        scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(size)
        scores = np.where(np.tril(np.ones((tokens, tokens), dtype=bool)), scores, -np.inf)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        attended = weights / weights.sum(axis=-1, keepdims=True) @ v
        results.append(attended.transpose(0, 2, 1, 3).reshape(qkv.shape[0], -1))
    return results


def _embedding(op: Op, devices: list[list[Array]]) -> list[Array]:
    """A member answers zeros for words whose rows others hold."""
    results: list[Array] = []
    start = 0
    for table, ids in devices:
        own = (ids >= start) & (ids < start + len(table))
        results.append(np.where(own[:, None], table[np.where(own, ids - start, 0)], 0.0))
        start += len(table)
    return results


def _cross_entropy(op: Op, devices: list[list[Array]]) -> list[Array]:
    """Maximum, sum of exponentials and the label's logit, each over all members."""
    highest = np.max([logits.max(axis=1) for logits, _ in devices], axis=0)
    total = sum(np.exp(logits - highest[:, None]).sum(axis=1) for logits, _ in devices)
    label_logits, start = np.zeros_like(highest), 0
    for logits, labels in devices:
        own = (labels >= start) & (labels < start + logits.shape[1])
        label_logits += np.where(own, logits[np.arange(len(labels)), np.where(own, labels - start, 0)], 0.0)
        start += logits.shape[1]
    return [highest + np.log(total) - label_logits for _ in devices]


RULES: Mapping[str, Callable[[Op, list[list[Array]]], list[Array]]] = {
    "matmul": _matmul,
    "add": _add,
    "activation": _activation,
    "norm": _norm,
    "attention": _attention,
    "embedding": _embedding,
    "cross_entropy": _cross_entropy,
}
