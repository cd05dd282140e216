"""A training job whose states leave the device: its step by part, each tier of memory, energy, money, and the run."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.execution.offload import OFFLOADS
from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import MemoryUse, Tiers, shortage
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.planner.money import tariff_of
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.knobs import read_train_knobs
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.train_answer import Trained
from orrery.scenario.train_offload_ask import Prepared, chosen_rule, prepare
from orrery.scenario.train_offload_work import parts_of
from orrery.scenario.train_run import StepCosts, run_of
from orrery.scenario.train_tiers import DEVICE_SHARES, exchange_s
from orrery.scenario.train_with.largest import largest_table
from orrery.scenario.train_with.refused import refuse_techniques
from orrery.training.columns import columns_of
from orrery.training.step import Steps, step_of
from orrery.training.worth import peak_flops_per_s, work_power_w

KINDS = {
    "compute": ("forward", "backward", "weight gradients", "recomputation"),
    "network": ("tensor parallel", "waiting for other ranks", "gradient reduction"),
    "memory": ("update",),
    "host": ("waiting for the host's update", "waiting for the host link"),
    "drives": ("waiting for drives",),
    "overhead": ("launches", "once a step"),
}
"""Limits of a step, and the parts of each."""

NO_INTERVALS = "intervals: none, no measured run with states off the device was compared"

ADAPTER_BYTES = 14.0
"""Bytes per weight of an adapter in a checkpoint: 16 bits, an FP32 copy and two moments of Adam."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OffloadAnswer(Trained):
    """One configuration of a training job with one technique of offloading; ``parts`` are the device's work, and what
    no work hides."""

    KINDS = KINDS

    offload: str  # the technique
    lanes: dict[str, float]  # seconds in which each lane works, hidden or not
    tiers: Tiers
    held: MemoryUse
    activation_bytes: float  # of all layers of a device and one micro-batch, where nothing is swapped or recomputed

    @property
    def peak_memory_bytes(self) -> float:
        """On a device."""
        return self.held.gpu_bytes

    def to_json(self) -> dict[str, Any]:
        """The answer in the shape that scripts rely on, that of training, with ``tiers``; SI units, bytes a device."""
        return to_json(
            {
                **self.figures_json(),
                "peak_memory_bytes": self.peak_memory_bytes,
                "offload": self.offload,
                "lanes": self.lanes,
                "activation_bytes": self.activation_bytes,
                "tiers": self._tiers_json(),
                "intervals": {},
                **self.job_json(),
            }
        )

    def _tiers_json(self) -> dict[str, dict[str, float]]:
        """Contents, capacity and speed of each tier, for one device."""
        t, held = self.tiers, self.held
        return {
            "device": {
                "held_bytes": held.gpu_bytes,
                "have_bytes": t.gpu_bytes,
                "bytes_per_s": t.gpu_memory_bytes_per_s,
            },
            "host": {
                "held_bytes": held.host_bytes,
                "have_bytes": t.host_bytes,
                "bytes_per_s": t.host_memory_bytes_per_s,
                "link_each_way_bytes_per_s": t.host_link_each_way_bytes_per_s,
            },
            "nvme": {
                "held_bytes": held.nvme_bytes,
                "have_bytes": t.nvme_bytes,
                "read_bytes_per_s": t.nvme_read_bytes_per_s,
                "write_bytes_per_s": t.nvme_write_bytes_per_s,
            },
        }


def offloaded(scenario: Scenario) -> OffloadAnswer | InfeasibleAnswer:
    """The answer to a scenario that names a technique of offloading."""
    refuse_techniques(scenario, "with states off the device", "offload", but="find_largest")
    ready = prepare(scenario)
    tables = (largest_table(ready),) if scenario.find_largest else ()
    infeasible, notes = _infeasible(ready), _notes(ready)
    tariff = tariff_of(ready.job.cluster.device, scenario.usd_per_hour, scenario.electricity)
    if infeasible:
        change = _enough_of_a_tier(scenario, ready) or first_fit(scenario, _easier(ready))
        text = f"{change} fits." if change else "Nothing near it fits: take more devices, or larger ones."
        return InfeasibleAnswer(infeasible=replace(infeasible, smallest_change=text), notes=notes, tables=tables)
    rule, step = chosen_rule(ready)
    rounds = step.choices.get("groups", 1.0)  # lanes of a layerwise update are those of a whole round
    parts = parts_of(rule, ready.pieces, ready.memory.tiers, ready.knobs.num_forward)
    job, layout = ready.job, ready.layout
    summed = exchange_s(job, layout, "all_reduce", _summed_bytes(ready, step))
    parts |= {"gradient reduction": summed, "once a step": job.framework.step_s}
    time_s = sum(parts.values())
    worth = _worth(ready, step, parts, time_s)
    costs = _step_costs(ready, step, parts, time_s, worth.power_w)
    return OffloadAnswer(
        job=job,
        layout=layout,
        offload=ready.name,
        step_time_s=time_s,
        parts=parts,
        lanes={k: float(v) / rounds for k, v in step.busy_s.items()},
        tiers=ready.memory.tiers,
        held=step.held,
        activation_bytes=ready.pieces.work.num_layers * ready.pieces.work.activation_bytes,
        mfu_frac=worth.model_flops / (time_s * peak_flops_per_s(job)),
        hfu_frac=worth.hardware_flops / (time_s * peak_flops_per_s(job)),
        power_w=worth.power_w,
        model_flops_per_s_per_device=worth.model_flops / time_s,
        tariff=tariff,
        run=run_of(scenario, costs, tariff),
        notes=tuple(dict.fromkeys((*notes, *tariff.notes, NO_INTERVALS))),
        tables=tables,
    )


def _notes(ready: Prepared) -> tuple[str, ...]:
    """Assumptions about the tiers in use."""
    held = ready.rule(replace(ready.pieces.work, num_micro_batches=1), ready.memory.tiers).held
    silent = [name for name, size in (("host_", held.host_bytes), ("nvme_", held.nvme_bytes)) if size <= 0.0]
    return tuple(note for note in ready.notes if not note.startswith(tuple(silent)))


def _infeasible(ready: Prepared) -> Infeasible | None:
    """The first tier that is too small; a tier holds the same for one micro-batch as for many."""
    tiers = ready.memory.tiers
    step = ready.rule(replace(ready.pieces.work, num_micro_batches=1), tiers)
    what = f"{ready.job.model.name} on {ready.job.cluster.num_devices} x {ready.job.cluster.device.name}"
    return shortage(step.held, tiers, f"{what} ({ready.layout}) with {ready.name}, one device's part")


def _summed_bytes(ready: Prepared, step: OffloadedStep) -> float:
    """Gradients that ranks add up after the passes, where the technique itself exchanges nothing.

    All of them travel after the backward pass: they are few. Both passes of a zeroth-order step exchange one number.
    """
    work = ready.pieces.work
    if ready.knobs.trains == "adapters":
        return step.choices["adapter_parameters"] * work.gradient_bytes
    return work.num_parameters / step.choices["groups"] * work.gradient_bytes if "groups" in step.choices else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Worth:
    """Operations and power of one device in one step."""

    model_flops: float
    hardware_flops: float
    power_w: float


def _worth(ready: Prepared, step: OffloadedStep, parts: dict[str, float], time_s: float) -> _Worth:
    """Operations that the passes make, and the power that these and the bytes through the device's memory draw."""
    job, device = ready.job, ready.job.cluster.device
    plain, full = (step_of(job, columns_of([replace(ready.layout, recompute=r)])) for r in ("none", "full"))
    whole = float(plain.model_flops[0]) / job.cluster.num_devices
    share = _learnt_frac(ready, step)
    again = _per_device(full) - _per_device(plain)
    work_s = sum(parts[n] for n in KINDS["compute"])
    again *= parts["recomputation"] / parts["forward"] if parts["forward"] > 0.0 else 0.0
    rate = device.memory_bandwidth_bytes_per_s
    moved = float(plain.moved_bytes[0]) - float(plain.parts["update"][0]) * rate
    moved *= share * work_s / max(work_s - parts["recomputation"], 1e-12)
    link = ready.memory.tiers.host_link_each_way_bytes_per_s
    copied = link * (step.busy_s["to_gpu"] + step.busy_s["to_host"]) / step.choices.get("groups", 1.0)
    moved += parts["update"] * rate + copied
    flops = share * whole + again
    power_w = work_power_w(job, np.array([flops]), plain.wide_frac, np.array([moved]), np.array([time_s]))
    return _Worth(model_flops=share * whole, hardware_flops=flops, power_w=float(power_w[0]))


def _per_device(steps: Steps) -> float:
    return float(steps.hardware_flops[0])


def _learnt_frac(ready: Prepared, step: OffloadedStep) -> float:
    """Operations of a step over those of a forward and a whole backward pass, each third of which is one product.

    Two forward passes are two thirds. One group of g goes back through (g + 1) / 2g of the layers in the mean, and
    makes 1 / g of the gradients of weights.
    """
    if not ready.knobs.has_backward:
        return ready.knobs.num_forward / 3.0
    groups = step.choices.get("groups", 1.0)
    return (1.0 + (groups + 1.0) / (2.0 * groups) + 1.0 / groups) / 3.0


def _step_costs(
    ready: Prepared, step: OffloadedStep, parts: dict[str, float], time_s: float, power_w: float
) -> StepCosts:
    """Costs of a run's steps; a forward pass alone fetches every layer once where parameters lie elsewhere."""
    work, tiers, is_shared = ready.pieces.work, ready.memory.tiers, ready.knobs.shares_states
    each_s = work.num_layers * work.forward_s + work.outer_forward_s
    fetched = work.num_layers * work.layer_bytes / (tiers.num_ranks if is_shared else 1)
    slowest = {
        "nvme": min(tiers.nvme_read_bytes_per_s, tiers.host_link_each_way_bytes_per_s),
        "host": tiers.host_link_each_way_bytes_per_s,
    }.get(ready.knobs.fetches_from)
    fetch_s = fetched / slowest if slowest else 0.0
    state = work.num_parameters * (work.parameter_bytes + work.state_bytes) / (tiers.num_ranks if is_shared else 1)
    if not ready.knobs.has_backward:
        state = work.num_parameters * work.parameter_bytes
    elif ready.knobs.trains == "adapters":
        state = ADAPTER_BYTES * step.choices["adapter_parameters"]
    return StepCosts(
        job=ready.job,
        step_s=time_s,
        forward_s=parts["forward"],
        update_s=parts["update"] + parts["waiting for the host's update"],
        evaluation_s=work.num_micro_batches * max(each_s, fetch_s),
        state_bytes=state,
        num_replicas=1 if is_shared else ready.layout.dp,
        power_w=power_w,
    )


def ladder() -> tuple[str, ...]:
    """Techniques that learn as training on the device does, from the one that moves least to what holds most."""
    known = OFFLOADS.techniques
    return tuple(sorted((n for n in known if known[n].knobs.rung), key=lambda n: known[n].knobs.rung))


def first_fit(scenario: Scenario, changes: Iterator[dict[str, Any]]) -> str:
    """Describe the first of some changes with which a scenario fits in every tier; empty where none does."""
    for change in changes:
        try:
            infeasible = _infeasible(prepare(merged(scenario, change)))
        except ScenarioError:
            continue
        if not infeasible:
            return ", ".join(_in_words(k, v) for k, v in change.items() if v is not None)
    return ""


def _in_words(name: str, value: Any) -> str:
    if name == "offload":
        return f"--offload {value}"
    return f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"


def _enough_of_a_tier(scenario: Scenario, ready: Prepared) -> str:
    """How much host memory, or how many drives, a node would need where the device itself is large enough."""
    tiers, shares = ready.memory.tiers, ready.job.cluster.devices_per_node
    held = ready.rule(replace(ready.pieces.work, num_micro_batches=1), tiers).held
    if held.gpu_bytes > tiers.gpu_bytes:
        return ""
    change: dict[str, Any] = {}
    for name, need, have in (
        ("host_memory_bytes", held.host_bytes, tiers.host_bytes),
        ("nvme_bytes", held.nvme_bytes, tiers.nvme_bytes),
    ):
        if need > have:
            change[name] = float(f"{1.005 * need * shares:.3g}")
    return first_fit(scenario, iter([change]))


def _easier(ready: Prepared) -> Iterator[dict[str, Any]]:
    """Changes that need less of the device, the smallest first."""
    layout, each = ready.layout, ready.layout.micro_batch
    smaller = [n for n in range(each - 1, 0, -1) if each % n == 0]
    again: dict[str, Any] = {"recompute": "full"} if ready.may_recompute else {}
    yield again
    yield from ({"micro_batch": n} for n in smaller)
    yield from (again | {"micro_batch": n} for n in smaller if again)
    others = [n for n in ladder() if n != ready.name] if ready.knobs.trains == "all weights" else []
    yield from ({"offload": n, "recompute": None} for n in others)
    for tp in _wider(layout, ready.job):
        yield {"tp": tp, "dp": None}
        yield {"tp": tp, "dp": None, "micro_batch": 1}
        yield from ({"offload": n, "tp": tp, "dp": None, "micro_batch": 1, "recompute": None} for n in others)


def _wider(layout: TrainingLayout, job: TrainingJob) -> list[int]:
    """Larger degrees of tensor parallelism within a node."""
    return [n for n in range(layout.tp + 1, job.cluster.devices_per_node + 1) if n % layout.tp == 0]


OPEN: dict[str, Any] = dict.fromkeys(
    (
        "pp",
        "cp",
        "ep",
        "etp",
        "vp",
        "first_stage_layers",
        "last_stage_layers",
        "dp",
        "sharding",
        "sharding_group",
        "secondary_group",
        "schedule",
        "recompute",
        "recompute_layers",
        "context_kind",
        "framework",
        "sequence_parallel",
    )
)
"""Settings that offloading does without."""


def first_offload(scenario: Scenario, layout: TrainingLayout) -> str:
    """Describe the first technique that makes a job fit which does not fit on the device; empty where none does."""
    node = min(scenario.devices_per_node or 8, scenario.devices or 1)
    degrees = [n for n in range(1, node + 1) if n >= layout.tp and n % layout.tp == 0] or [layout.tp]
    sizes = dict.fromkeys((layout.micro_batch, 1))
    changes = (
        {"offload": name, "tp": tp, "micro_batch": size, **OPEN}
        for tp in degrees
        for size in sizes
        for name in ladder()
    )
    base_settings = {"tp": layout.tp, "micro_batch": layout.micro_batch}
    for change in changes:
        if first_fit(scenario, iter([change])):
            text = [_in_words(k, v) for k, v in change.items() if v is not None and base_settings.get(k) != v]
            dropped = [n for n in ("pp", "cp", "ep") if getattr(layout, n) > 1]
            return ", ".join(text) + (f" without {', '.join(dropped)}" if dropped else "")
    return ""


def fits_tiers(scenario: Scenario) -> bool:
    """Whether a scenario with a technique of offloading fits in every tier; ScenarioError where it makes no sense."""
    return _infeasible(prepare(scenario)) is None


def refuse_tiers(scenario: Scenario) -> None:
    """Refuse sizes and rates of tiers that nothing goes to, and knobs of what sends it there."""
    if given := read_train_knobs(scenario.knob)["offload"]:
        raise ScenarioError(f"knob: offload.{next(iter(given))} is read with offload; write that beside it.")
    for name in (*DEVICE_SHARES, "devices_per_host_link", "host_updates_per_s"):
        if name == "host_memory_bytes" and scenario.seq_lengths is not None:
            continue  # long sequences leave activations there
        if name == "devices_per_host_link" and scenario.activation_offloading:
            continue  # activations leave over it
        if name == "host_memory_bytes_per_s" and scenario.checkpoint is not None:
            continue  # saves pass through it
        if getattr(scenario, name) is not None:
            raise ScenarioError(
                f"{name}: is given, but nothing leaves the device; write --offload too, or leave it out."
            )
