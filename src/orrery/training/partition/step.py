"""A step whose state is cut by a plan: seconds by part, bytes by part, and which plan is fastest that fits."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from orrery.base.errors import ScenarioError
from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.execution.train.layout import Recompute, TrainingLayout
from orrery.execution.train.units import units
from orrery.training.columns import choices, columns_of
from orrery.training.levels import DEVICE, Topology
from orrery.training.memory import room_bytes
from orrery.training.partition.traffic import exchange_s, traffic_of
from orrery.training.stage_kinds import stage_kinds
from orrery.training.stage_layers import stage_layers
from orrery.training.state_plan import Plan
from orrery.training.step import Steps, stages, step_of

OWN = ("forward", "backward", "weight gradients", "recomputation", "launches", "update", "once a step")
"""Parts of a step that do not depend on where state lies, but for the update, which is as long as its share."""

GATHERED_LAYERS = 2.0
"""Layers whose weights are whole at a time: one in use, one on its way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionedStep:
    """One step under one plan."""

    plan: Plan
    parts: dict[str, float]  # seconds; they add up to the step
    held: dict[str, float]  # bytes of a device
    exchanges: dict[str, float]  # seconds of each collective in a whole step, hidden or not
    model_flops: float  # of all devices
    num_devices: int

    @property
    def time_s(self) -> float:
        """Time (s) of the step."""
        return sum(self.parts.values())

    @property
    def memory_bytes(self) -> float:
        """The allocator's peak on a device."""
        return sum(self.held.values())

    @property
    def model_flops_per_s_per_device(self) -> float:
        """The model's operations a second, each device."""
        return self.model_flops / self.time_s / self.num_devices


def partitioned_step(
    job: TrainingJob, topology: Topology, plan: Plan, *, micro_batch: int = 1, recompute: Recompute = "none"
) -> PartitionedStep:
    """Every device is a data-parallel rank; weights, gradients and optimizer states lie where the plan says."""
    _checked(job, topology, plan, micro_batch)
    steps, elements = _plain(job, topology, plan, micro_batch, recompute)
    parts = {name: float(steps.parts[name][0]) for name in OWN}
    x, num_layers = steps.columns, sum(b.count for b in (*job.model.encoder, *job.model.blocks))
    rounds = job.global_batch // (int(x.dp[0]) * micro_batch)
    traffic = traffic_of(plan, topology, elements / num_layers, elements)
    forward_s, backward_s, gradient_s = (
        rounds * num_layers * sum(exchange_s(job, topology, e) for e in found)
        for found in (traffic.forward, traffic.backward, traffic.gradients)
    )
    work_s = parts["backward"] + parts["weight gradients"] + parts["recomputation"]
    parts["gathering"] = _exposed(job, forward_s, parts["forward"], job.framework.overlaps_parameters)
    parts["gathering again, reducing"] = _exposed(
        job, backward_s + gradient_s, work_s, job.framework.overlaps_parameters
    )
    parts["once a step, between groups"] = sum(exchange_s(job, topology, e) for e in traffic.step)
    every = {e.what: exchange_s(job, topology, e) for e in traffic.step}
    for found in (traffic.forward, traffic.backward, traffic.gradients):
        every |= {e.what: rounds * num_layers * exchange_s(job, topology, e) for e in found}
    return PartitionedStep(
        plan=plan,
        parts=parts,
        held=_held(job, topology, plan, steps, elements, num_layers),
        exchanges=every,
        model_flops=float(steps.model_flops[0]),
        num_devices=topology.num_devices,
    )


def _checked(job: TrainingJob, topology: Topology, plan: Plan, micro_batch: int) -> None:
    devices = topology.num_devices
    if devices != job.cluster.num_devices:
        raise ScenarioError(f"levels: hold {devices} devices, the job has {job.cluster.num_devices}; write the same.")
    if text := plan.refusal(topology):
        raise ScenarioError(f"{plan.name}: {text}")
    if job.global_batch % (devices * micro_batch):
        raise ScenarioError(
            f"global_batch: {job.global_batch} is no multiple of {devices} devices x {micro_batch}; "
            f"write {max(1, job.global_batch // (devices * micro_batch)) * devices * micro_batch}."
        )
    if job.task in FROZEN:
        raise ScenarioError(f"task: {job.task} trains few parameters, which need no plan; write 'pretrain'.")


def _plain(
    job: TrainingJob, topology: Topology, plan: Plan, micro_batch: int, recompute: Recompute
) -> tuple[Steps, float]:
    """The step as the training floor costs it, its optimizer's state dealt out as planned; and the parameters."""
    ways = topology.size(plan.optimizer)
    layout = TrainingLayout(
        dp=topology.num_devices,
        micro_batch=micro_batch,
        recompute=recompute,
        sharding="zero1" if ways > 1 else "none",
        sharding_group=ways if ways > 1 else 0,
    )
    x = columns_of([layout])
    choice, which = choices(x)
    found = units(job, choice)
    whole = stages(found, x, which, stage_kinds(found, x, stage_layers(found.num_layers, x)))[0]
    return step_of(job, x, (found, which)), float(whole.dense_parameters[0] + whole.expert_parameters[0])


def _exposed(job: TrainingJob, exchange: float, work: float, is_hidden: bool) -> float:
    """Exposed time of collectives beside work: the part that it does not cover, and its slowdown."""
    if not is_hidden:
        return exchange
    return max(exchange - work, 0.0) + (job.framework.contention_ratio - 1.0) * min(exchange, work)


def _held(
    job: TrainingJob, topology: Topology, plan: Plan, steps: Steps, elements: float, num_layers: int
) -> dict[str, float]:
    """Bytes of a device: each state over its group, whole layers on the way, activations as without a plan."""
    f, recipe = job.framework, job.recipe
    w, g, o = (topology.size(x) for x in (plan.weights, plan.gradients, plan.optimizer))
    gradient = recipe.gradient_bytes or f.gradient_bytes
    weights = (recipe.weights_bytes or f.weights_bytes) + recipe.weight_copy_bytes
    master = recipe.master_bytes if recipe.master_bytes >= 0 else f.master_bytes
    layer = elements / num_layers
    second = weights * elements / topology.size(plan.secondary) if plan.secondary != DEVICE else 0.0
    buffers = (GATHERED_LAYERS * weights * layer if w > 1 else 0.0) + (gradient * layer if g > 1 else 0.0)
    plain = {name: float(steps.first.parts[name][0]) for name in ("activations", "logits", "fixed")}
    loose = plain["activations"] + plain["logits"] + buffers
    return {
        "weights": weights * elements / w,
        "second copy of weights": second,
        "gradients": gradient * elements / g,
        "optimizer": (master + (recipe.moments_bytes or f.moments_bytes)) * elements / o,
        **plain,
        "buffers": buffers,
        "fragmentation": (f.fragmentation_ratio - 1.0) * loose,
    }


def ranked(
    job: TrainingJob, topology: Topology, plans: Iterable[Plan], *, micro_batch: int = 1, recompute: Recompute = "none"
) -> list[PartitionedStep]:
    """The plans that fit, fastest first; of equal ones the smallest."""
    have = room_bytes(job)
    steps = [partitioned_step(job, topology, p, micro_batch=micro_batch, recompute=recompute) for p in plans]
    return sorted((s for s in steps if s.memory_bytes <= have), key=lambda s: (s.time_s, s.memory_bytes))


def largest_fitting(job: TrainingJob, topology: Topology, plan: Plan, recompute: Recompute = "none") -> int:
    """The largest micro-batch (a power of two) whose step fits under the plan; 0 where none does.

    The batch is one micro-batch a device, so that only memory decides.
    """
    have, fits, size = room_bytes(job), 0, 1
    while size <= job.seq_len:
        alone = replace(job, global_batch=size * topology.num_devices)
        if partitioned_step(alone, topology, plan, micro_batch=size, recompute=recompute).memory_bytes > have:
            break
        fits, size = size, 2 * size
    return fits
