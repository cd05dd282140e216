"""Placement of a layer's weight matrices on a mesh: searched, by two rules, and as Megatron-LM writes it."""

from typing import Any

from orrery import network
from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.models.model import Block, SoftmaxAttention
from orrery.scenario.schema import Scenario
from orrery.scenario.show import Table
from orrery.scenario.train_with.changed import Changed
from orrery.training.memory import room_bytes
from orrery.training.placement.conversion import cheapest
from orrery.training.placement.graph import Graph, Sizes, transformer_layer
from orrery.training.placement.mesh import Mesh
from orrery.training.placement.redco import cuts, hand_written, matrices, training_memory
from orrery.training.placement.search import Plan, Problem, account, cheapest_plan
from orrery.training.placement.signature import MeshSignature, Signature, signatures
from orrery.training.placement.state import BROADCAST, PARTIAL, Placement, State, split

STEP = "placement: says how matrices are cut; the step is that of the layout"
ALIKE = (
    "placement: searched for a layer with as many keys and values as queries and one matrix into the feed-forward "
    "part; this model's own differ in size"
)

MEGATRON = {"qkv": "a", "attention": "a", "out": "a", "up": "f", "activation": "f", "down": "f"}
"""Megatron-LM's split of each operator over the tensor-parallel ranks; norms and sums are whole. [shoeybi-2019]"""

AXES = ("data-parallel ranks", "tensor-parallel ranks")


def with_placement(scenario: Scenario, plain: Changed) -> Changed:
    """The same step, with the cut of every matrix beside."""
    if scenario.placement is None:
        return plain
    layout = plain.layout
    if layout.cp > 1 or layout.ep > 1:
        raise ScenarioError(f"placement: {layout}; write cp = ep = 1: matrices are cut over dp and tp.")
    block = plain.job.model.blocks[0]
    if scenario.placement == "two-rules":
        return plain.saying(*_ruled(plain), notes=(STEP,))
    if not isinstance(block.mixer, SoftmaxAttention) or block.experts is not None or not block.activation_elements:
        raise ScenarioError(f"placement: {plain.job.model.name} has no plain attention and feed-forward layers.")
    tables, is_alike = _searched(plain, block, block.mixer)
    return plain.saying(*tables, notes=(STEP,) if is_alike else (STEP, ALIKE))


def _searched(plain: Changed, block: Block, mixer: SoftmaxAttention) -> tuple[tuple[Table, ...], bool]:
    job, layout, hidden = plain.job, plain.layout, plain.job.model.hidden_size
    made = next((x.out_features for x in block.linears if x.name in ("gate_up", "up")), 0)
    down = next((x.in_features for x in block.linears if x.name == "down"), block.activation_elements)
    sizes = Sizes(
        num_sequences=layout.dp * layout.micro_batch,
        sequence_tokens=job.seq_len,
        hidden_size=hidden,
        num_heads=mixer.num_heads,
        ffn_size=int(down),
    )
    mesh = Mesh(device=job.cluster.device, shape=(layout.dp, layout.tp), devices_per_node=job.cluster.devices_per_node)
    graph = transformer_layer(sizes)
    layers = -(-job.model.num_layers // layout.pp)
    best = cheapest_plan(graph, mesh, memory_limit_bytes=room_bytes(job) / layers)
    written = megatron_plan(graph, mesh)
    plans = {"megatron": written} if isinstance(best, Infeasible) else {"searched": best, "megatron": written}
    rows = [_plan_row(name, plan) for name, plan in plans.items()]
    cost = Table(kind="plans", title="One layer and micro-batch, all in turn", rows=tuple(rows))
    if isinstance(best, Infeasible):
        raise ScenarioError(f"placement: {best}")
    cut = Table(
        kind="matrices",
        title="Where each matrix lies (S(0) by inputs, S(1) by outputs, B whole)",
        rows=_matrix_rows(best, written),
    )
    hidden_bytes = ELEMENT_BYTES * layout.micro_batch * job.seq_len * hidden
    changes = Table(
        kind="conversions",
        title=f"From one state to another over the {AXES[1] if layout.tp > 1 else AXES[0]}, hidden values",
        rows=tuple(_change_row(mesh, 1 if layout.tp > 1 else 0, hidden_bytes, *change) for change in CHANGES),
    )
    is_alike = mixer.num_kv_heads == mixer.num_heads and made == down
    return (cut, cost, changes), is_alike


def megatron_plan(graph: Graph, mesh: Mesh) -> Plan:
    """Tokens over the first axis; matrices by outputs, then by inputs over the second, with whole values between."""
    problem = Problem(graph=graph, mesh=mesh)
    chosen: dict[str, MeshSignature] = {}
    for op in graph.ops:
        known = signatures(op, graph)
        chosen[op.name] = (_by(known, "t"), _by(known, MEGATRON.get(op.name, "")))
    return account(problem, chosen, {"x": (split(0), BROADCAST)})


def _by(known: tuple[Signature, ...], letter: str) -> Signature:
    return next(s for s in known if s.letter == letter)


def _matrix_rows(best: Plan, written: Plan) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "matrix": name.removeprefix("w_"),
            "searched": _words(placement),
            "megatron": _words(written.weights[name]),
            "same": placement == written.weights[name],
        }
        for name, placement in best.weights.items()
    )


def _words(placement: Placement) -> str:
    """The state over the data-parallel ranks, and over the tensor-parallel ones."""
    return " x ".join(map(str, placement))


CHANGES: tuple[tuple[State, State], ...] = (
    (split(0), BROADCAST),
    (PARTIAL, split(0)),
    (PARTIAL, BROADCAST),
    (split(0), split(1)),
    (BROADCAST, split(0)),
)
"""All changes of state that differ, the free one last."""

ELEMENT_BYTES = 2.0


def _change_row(mesh: Mesh, axis: int, tensor_bytes: float, before: State, after: State) -> dict[str, Any]:
    """Bytes that the devices of one group send together over those of the tensor, and their time."""
    line = Mesh(device=mesh.device, shape=(mesh.shape[axis],), devices_per_node=mesh.devices_per_node)
    sent_bytes = time_s = 0.0
    names: list[str] = []
    for step in cheapest((before,), (after,), tensor_bytes, line):
        if step.collective and line.num_devices > 1:
            work = line.collective(step.collective, 0, step.message_bytes(tensor_bytes, line.shape))
            found = network.predict(work, line.device)
            sent_bytes += line.num_devices * float(found.sent_bytes)
            time_s += float(found.time_s)
            names.append(step.collective.replace("_", "-"))
    return {
        "change": f"{before} to {after}",
        "collective": ", ".join(names) or "none",
        "sent_ratio": sent_bytes / tensor_bytes,
        "time_s": time_s,
    }


def _plan_row(name: str, plan: Plan) -> dict[str, Any]:
    return {
        "plan": name,
        "time_s": plan.time_s,
        "compute_s": plan.compute_s,
        "conversion_s": plan.conversion_s + plan.inner_s,
        "weights_s": plan.weights_s,
        "update_s": plan.update_s,
        "weight_bytes": plan.weight_bytes,
    }


def _ruled(plain: Changed) -> tuple[Table, ...]:
    """Cuts by the two rules beside those that the model's family writes by hand, and the memory under them."""
    job, tp = plain.job, plain.layout.tp
    rows: list[dict[str, Any]] = []
    for block in (*job.model.encoder, *job.model.blocks):
        ruled, written = cuts(matrices(block), tp), hand_written(block)
        rows += [
            {"layer": block.name, "matrix": name, "two_rules": ruled[name], "megatron": written[name]}
            | {"same": ruled[name] == written[name]}
            for name in ruled
        ]
    memory = tuple(_memory_row(plain, shards) for shards in _meshes(job.cluster.num_devices, tp))
    return (
        Table(kind="matrices", title="Cuts by two rules, and as written by hand", rows=tuple(rows)),
        Table(kind="memory_by_rules", title="Memory of a device, all in 32 bits, nothing recomputed", rows=memory),
    )


def _meshes(num_devices: int, tp: int) -> list[int]:
    """Shards of a model on ever larger meshes up to all devices, the layout's own among them."""
    doubled = [1 << power for power in range(num_devices.bit_length())]
    return sorted({*doubled, tp, num_devices})


def _memory_row(plain: Changed, shards: int) -> dict[str, Any]:
    job = plain.job
    held = training_memory(
        job.model, shards, sequence_tokens=job.seq_len, num_sequences=plain.layout.micro_batch, element_bytes=4.0
    )
    return {
        "shards": shards,
        "state_bytes": held.state_bytes,
        "activations_bytes": held.activations_bytes,
        "total_bytes": held.total_bytes,
        "fits": held.total_bytes <= job.cluster.device.memory_capacity_bytes,
    }
