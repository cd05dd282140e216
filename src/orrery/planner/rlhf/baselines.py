"""Plans that people make by hand, and those of other systems: what a searched plan is compared with.

symmetric:  every call on the whole cluster with one cut: tensor parallelism inside a node, the best number of pipeline
            stages, data parallelism over the rest, as one would pre-train with Megatron-LM. [narayanan-2021]
zero3:      every call on the whole cluster with all parameters dealt out; each layer is gathered whenever it is used,
            in generation for every token. [yao-2023]
disjoint:   every model on nodes of its own, training and reading with dealt-out parameters, and a separate group of
            engines that only write. [hu-2024]
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.execution.train.exchanges import ELEMENT_BYTES, collective_s
from orrery.execution.train.framework import Framework
from orrery.planner.rlhf.dataflow import RlhfJob
from orrery.planner.rlhf.generation import Generation
from orrery.planner.rlhf.mesh import Mesh
from orrery.planner.rlhf.plan import Evaluator, Placed, Plan
from orrery.planner.rlhf.search import Space
from orrery.planner.rlhf.ways import WAVES, CallPlacement, infer_ways, train_ways

PARTS = {"train actor": 2, "generate": 2, "train critic": 2, "reference": 1, "reward": 1}
"""Parts of the cluster that disjoint models get. Assumed: those that learn or write twice those that only read."""

BESIDE = {"values": "train critic", "log-probabilities": "train actor"}
"""Calls that run where their model is trained."""


def symmetric(space: Space) -> Plan | Infeasible:
    """The fastest number of stages with which all calls fit; the rest of the cluster is data parallel."""
    job, n = space.job, space.job.cluster.num_devices
    tp = min(job.cluster.devices_per_node, n)
    evaluator, tried = Evaluator(job), list[Plan]()
    for pp in (1 << i for i in range((n // tp).bit_length())):
        choices = [
            [w for w in by_size.get(n, ()) if (w.tp, w.pp) == (tp, pp) and not w.is_offloaded] for by_size in space.ways
        ]
        if all(choices):
            tried.append(_fastest_that_fits(evaluator, choices, [Mesh(first=0, num_devices=n)] * len(choices)))
    fitting = [p for p in tried if p.fits]
    if fitting:
        return min(fitting, key=lambda p: p.time_s)
    need = min((p.memory_bytes for p in tried), default=float("inf"))
    return Infeasible(
        what=f"one layout with tp = {tp} for every call",
        need=need,
        have=evaluator.capacity_bytes,
        unit="bytes",
        smallest_change="Use more devices, or search for a plan.",
    )


def _fastest_that_fits(evaluator: Evaluator, choices: Sequence[Sequence[CallPlacement]], where: Sequence[Mesh]) -> Plan:
    """Each call's fastest way whose work fits beside what all calls on its mesh keep, or its leanest one.

    Calls of a trained model run on its own cut here, so none of them needs a copy of the weights.
    """
    least = [min(w.resident_bytes for w in found) for found in choices]
    placed: list[Placed] = []
    for found, mesh in zip(choices, where, strict=True):
        resident_bytes = sum(held for held, other in zip(least, where, strict=True) if mesh.overlaps(other))
        fitting = [w for w in found if resident_bytes + w.work_bytes <= evaluator.capacity_bytes]
        way = min(fitting, key=lambda w: w.time_s) if fitting else min(found, key=lambda w: w.peak_bytes)
        placed.append(Placed(mesh=mesh, way=way))
    return evaluator.plan(placed)


def zero3(job: RlhfJob, framework: Framework) -> Plan | Infeasible:
    """All calls over all devices with ``framework``; mini-batches are no smaller than one sequence a device."""
    n = job.cluster.num_devices
    job = _with_room(job, n)
    whole = Mesh(first=0, num_devices=n)
    choices = [_sharded(job, call.role, call.kind, n, framework) for call in job.calls]
    if not all(choices):
        return _refused(job, "dealt-out parameters", n)
    plan = _fastest_that_fits(Evaluator(job), choices, [whole] * len(choices))
    return _checked(plan, "every call with dealt-out parameters")


def disjoint(job: RlhfJob, framework: Framework) -> Plan | Infeasible:
    """Groups side by side; the actor's new parameters go to the engines that write after every update."""
    n, first = job.cluster.num_devices, 0
    groups = [name for name in PARTS if any(call.name == name for call in job.calls)]
    parts = sum(PARTS[name] for name in groups)
    where: dict[str, Mesh] = {}
    for name in groups:
        size = max(1, n * PARTS[name] // parts)
        where[name] = Mesh(first=first, num_devices=size)
        first += size
    where |= {name: where[home] for name, home in BESIDE.items() if home in where}
    if first > n:
        return Infeasible(
            what=f"{len(groups)} groups side by side",
            need=float(first),
            have=float(n),
            unit="devices",
            smallest_change=f"Use {first} devices or more.",
        )
    meshes = [where[call.name] for call in job.calls]
    choices = [
        _engines(job, call.role, mesh.num_devices)
        if call.kind == "generate"
        else _sharded(_with_room(job, mesh.num_devices), call.role, call.kind, mesh.num_devices, framework)
        for call, mesh in zip(job.calls, meshes, strict=True)
    ]
    if not all(choices):
        return _refused(job, f"{len(groups)} groups", n)
    return _checked(_fastest_that_fits(Evaluator(job), choices, meshes), "every model on devices of its own")


def _room(job: RlhfJob) -> float:
    return job.room_bytes


def _with_room(job: RlhfJob, num_devices: int) -> RlhfJob:
    """The same job with as many mini-batches as leave every data-parallel rank a sequence."""
    most = min(job.num_mini_batches, max(1, job.batch // num_devices))
    return replace(job, num_mini_batches=next(n for n in range(most, 0, -1) if job.batch % n == 0))


def _sharded(job: RlhfJob, role: str, kind: str, num_devices: int, framework: Framework) -> list[CallPlacement]:
    """Ways with nothing but dealt-out parameters."""
    cut = [(1, 1, num_devices)]
    if kind == "train":
        return train_ways(job, role, cut, framework=framework, sharding="zero3")
    if kind == "infer":
        found = infer_ways(job, role, cut, framework=framework, sharding="zero3" if num_devices > 1 else "none")
        return [w for w in found if not w.is_offloaded]
    return _gathered_generation(job, role, num_devices, framework)


def _gathered_generation(job: RlhfJob, role: str, num_devices: int, framework: Framework) -> list[CallPlacement]:
    """Each token takes a pass for which every layer is gathered over all devices, one ahead of the compute."""
    if job.batch % num_devices:
        return []
    training, model = job.training_job(role, job.batch), job.models[role]
    layer_bytes = ELEMENT_BYTES * (model.num_parameters - model.embedding_parameters) / model.num_layers
    one = np.array([1], dtype=np.int64)
    once_s = float(collective_s(training, "all_gather", one * num_devices, one, np.array([layer_bytes]))[0])
    is_inside = num_devices <= job.cluster.devices_per_node
    gather_s = model.num_layers * once_s * (framework.network_ratio if is_inside else framework.scaleout_ratio)
    generation, out = Generation(job, role), list[CallPlacement]()
    for waves in WAVES:
        if job.batch % (num_devices * waves) == 0:
            run = generation.run(1, 1, job.batch // (num_devices * waves), waves)
            passes_s = (run.num_steps + waves) * max(run.step_s, gather_s)
            prefill_s = max(run.time_s - run.num_steps * run.step_s, waves * gather_s) - waves * run.step_s
            out.append(
                CallPlacement(
                    tp=1,
                    pp=1,
                    dp=num_devices,
                    micro_batch=waves,
                    time_s=passes_s + max(prefill_s, 0.0),
                    resident_bytes=0.0,
                    weights_bytes=0.0,
                    work_bytes=run.work_bytes + 2.0 * layer_bytes,
                    sharding="zero3",
                )
            )
    return out


def _engines(job: RlhfJob, role: str, num_devices: int) -> list[CallPlacement]:
    """Engines that only write: the narrowest tensor parallelism whose weights leave half of a device to caches."""
    generation, tp, out = Generation(job, role), 1, list[CallPlacement]()
    most = min(job.cluster.devices_per_node, num_devices)
    while tp < most and job.models[role].num_parameters * ELEMENT_BYTES / tp > 0.5 * _room(job):
        tp *= 2
    dp = num_devices // tp
    for waves in WAVES:
        if dp and job.batch % (dp * waves) == 0:
            run = generation.run(tp, 1, job.batch // (dp * waves), waves)
            out.append(
                CallPlacement(
                    tp=tp,
                    pp=1,
                    dp=dp,
                    micro_batch=waves,
                    time_s=run.time_s,
                    resident_bytes=run.weights_bytes,
                    weights_bytes=0.0,
                    work_bytes=run.work_bytes,
                )
            )
    return [w for w in out if w.peak_bytes <= _room(job)]


def _refused(job: RlhfJob, what: str, num_devices: int) -> Infeasible:
    return Infeasible(
        what=f"{what} on {num_devices} devices with {job.batch} prompts",
        need=float(num_devices),
        have=float(job.batch),
        unit="sequences",
        smallest_change="Use a batch that the devices divide.",
    )


def _checked(plan: Plan, what: str) -> Plan | Infeasible:
    if plan.fits:
        return plan
    return Infeasible(
        what=what, need=plan.memory_bytes, have=plan.capacity_bytes, unit="bytes", smallest_change="Use more devices."
    )
