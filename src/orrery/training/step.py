"""One step of many layouts at once: seconds by part, memory of the fullest rank, and what it is worth.

A step is m micro-batches through the slowest stage, the schedule's idle time, what data parallelism exposes, and the
update. Nothing here depends on m or on the number of layers but through products, so the cost of asking does not.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import knob_array
from orrery.execution.train.exchanges import ELEMENT_BYTES, curves_of
from orrery.execution.train.gradient_sum import GradientSum
from orrery.execution.train.hidden import gradient_technique
from orrery.execution.train.job import FROZEN, TrainingJob
from orrery.execution.train.modules import MODULES
from orrery.execution.train.units import Units, units
from orrery.training.columns import Columns, choices, distinct
from orrery.training.expert_moves import moved_parameters
from orrery.training.memory import (
    MemoryBytes,
    expert_state_bytes,
    held_bytes,
    module_bits,
    saved_bytes_each,
    state_bytes,
)
from orrery.training.pace import StepTimes, end_pace, layer_pace, modules_again_s
from orrery.training.schedules.registry import get_schedule
from orrery.training.schedules.schedule import Pipeline
from orrery.training.stage_kinds import Counts, StageKinds, stage_kinds
from orrery.training.stage_layers import StageLayers, is_told, stage_layers
from orrery.training.sync import STAGE_FIELDS, Groups, Stage, Sync, gradient_bytes, sync_of, update_s

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PARTS = (
    "forward",
    "backward",
    "weight gradients",
    "recomputation",
    "activation offloading",
    "tensor parallel",
    "context parallel",
    "expert parallel",
    "sharding",
    "launches",
    "bubble",
    "hand-overs",
    "gradient reduction",
    "parameter gathering",
    "update",
    "once a step",
)
"""Where the seconds of a step go, in the order in which they are shown; they add up to the step."""


@dataclass(frozen=True, eq=False)
class Steps:
    """The answer for every layout; arrays of one entry a layout."""

    job: TrainingJob
    columns: Columns
    parts: dict[str, Floats]  # seconds, keys are PARTS
    first: MemoryBytes  # bytes of a device of the first pipeline stage
    last: MemoryBytes  # and of the last
    inner: MemoryBytes | None  # and of the second, where it holds more layers
    model_flops: Floats  # of one step over all devices, without recomputation
    hardware_flops: Floats  # of one step on one device, with it
    wide_frac: Floats  # share of those in the format that the recipe keeps for attention, the head and wide layers
    moved_bytes: Floats  # through the memory of one device in one step

    @cached_property
    def time_s(self) -> Floats:
        """Seconds of a step."""
        return sum(self.parts.values(), np.zeros(1))

    @cached_property
    def memory_bytes(self) -> Floats:
        """The allocator's peak on the fullest device."""
        ends = np.maximum(self.first.total, self.last.total)
        return ends if self.inner is None else np.maximum(ends, self.inner.total)

    @property
    def tokens_per_s_per_device(self) -> Floats:
        """Tokens a second, over all devices, each."""
        x = self.columns
        return self.job.tokens_per_step / self.time_s / (x.tp * x.cp * x.pp * x.dp)


def step_of(job: TrainingJob, x: Columns, ready: tuple[Units, Ints] | None = None) -> Steps:
    """Cost every layout of ``x``; ``ready`` hands in units that the caller has asked for already."""
    if ready is None:
        choice, which = choices(x)
        ready = units(job, choice), which
    found, which = ready
    pace, ends = layer_pace(found), (end_pace(found, found.embedding), end_pace(found, found.head))
    m = job.global_batch / (x.dp * x.micro_batch)
    layers = stage_layers(found.num_layers, x)
    kinds = stage_kinds(found, x, layers)
    stage_first, stage_middle, stage_last = placed(x, stages(found, x, which, kinds))
    kinds = kinds.mixed(0.5 * is_mirrored(x))
    fuller = _mixed(_mixed(stage_first, stage_last, np.maximum), stage_middle, np.maximum)
    sync = sync_of(job, x, fuller)
    schedules = list(_numbers(x, m))
    sends, joined = _sent_and_joined(x, schedules)
    if job.framework.overlaps_experts:  # pipelines need chunks that can be taken turn about
        joined = np.maximum(joined, np.where((x.pp == 1) | (x.vp > 1), 1.0 - 1.0 / m, 0.0))
    each = _layer_parts(job, found, x, pace, which, sync, joined)
    busy, idle_base = _slowest(found, x, which, layers, each, ends)
    parts = {name: m * seconds for name, seconds in busy.items()}
    in_flight, in_flight_last, copies = in_flight_of(x, m, schedules)
    parts["sharding"] = parts["sharding"] + m * ends_s(job, sync)
    parts["bubble"] = _idle_s(x, schedules, idle_base) * _chunk_ratio(found.num_layers, x, layers)
    parts["hand-overs"] = _hand_overs(job, x, found, m, sends)
    parts |= _exposed(job, x, busy, sync, fuller, layers, _exchange_s(x, pace, which))
    parts["parameter gathering"] = parts["parameter gathering"] + _moves_s(job, x, fuller)
    parts["update"] = update_s(job, x, fuller)
    parts["once a step"] = np.full(len(x), job.framework.step_s)
    one = x.pp == 1
    first = held_bytes(
        job,
        x,
        found,
        which,
        stage=stage_first,
        layers=layers.num_first,
        in_flight=in_flight,
        copies=copies,
        has_head=one,
        kinds=kinds.first,
    )
    last = held_bytes(
        job,
        x,
        found,
        which,
        stage=stage_last,
        layers=layers.num_last,
        in_flight=in_flight_last,
        copies=copies,
        has_head=np.ones(len(x), dtype=np.bool_),
        kinds=kinds.last,
    )
    inner = None
    is_led = job.model.num_leading_dense_layers > 0 and bool((x.pp > 2).any())
    if is_led or (layers.num_middle > layers.num_first).any():  # the second rank holds more, for less long
        later = in_flight + (in_flight_last - in_flight) / np.maximum(x.pp - 1, 1)
        inner = held_bytes(
            job,
            x,
            found,
            which,
            stage=stage_middle,
            layers=layers.num_middle,
            in_flight=later,
            copies=copies,
            has_head=np.zeros(len(x), dtype=np.bool_),
            kinds=kinds.middle,
        )
    model, hardware, wide = _flops(job, found, x, which, m)
    return Steps(
        job=job,
        columns=x,
        parts={name: parts[name] for name in PARTS},
        first=first,
        last=last,
        inner=inner,
        model_flops=model,
        hardware_flops=hardware,
        wide_frac=wide / hardware,
        moved_bytes=_moved(job, found, x, which, m, parts["update"]),
    )


def stages(found: Units, x: Columns, which: Ints, kinds: StageKinds) -> tuple[Stage, Stage, Stage]:
    """Parameters of a device of the first stage, of one in between, and of the last."""
    layer = found.layer
    dense, experts = layer.dense_parameters[which], layer.expert_parameters[which]
    embedding, head = found.embedding.parameters[which], found.head.parameters[which]
    one, none = x.pp == 1, np.zeros(len(x))
    own_head = none if found.job.model.is_head_tied else head  # beside the embedding
    is_frozen = found.job.task in FROZEN

    def stage(counts: Counts, low: Floats, high: Floats) -> Stage:
        def total(name: str) -> Floats:
            held = zip(counts, found.kinds, strict=True)
            return sum((n * getattr(kind, name)[which] for n, (_, kind) in held), np.zeros(len(x)))

        own, routed, ends = total("dense_parameters"), total("expert_parameters"), low + high
        return Stage(
            dense_parameters=own + ends,
            expert_parameters=routed,
            layer_dense_parameters=dense,
            layer_expert_parameters=experts,
            trained_parameters=total("trained_parameters") if is_frozen else own + routed + ends,
            embedding_parameters=low,
            head_parameters=high,
        )

    return (
        stage(kinds.first, embedding, np.where(one, own_head, 0.0)),
        stage(kinds.middle, none, none),
        stage(kinds.last, np.where(one, embedding, 0.0), np.where(one, own_head, head)),
    )


def placed(x: Columns, found: tuple[Stage, Stage, Stage]) -> tuple[Stage, Stage, Stage]:
    """Memory of a rank at either end and between them: of a mirrored pipeline the mean of both ends, twice."""
    half = 0.5 * is_mirrored(x)
    if not half.any():
        return found
    first, middle, last = found
    bottom, top = (_mixed(a, b, lambda a, b: a + half * (b - a)) for a, b in ((first, last), (last, first)))
    return bottom, middle, top


def _mixed(one: Stage, other: Stage, mix: Callable[[Floats, Floats], Floats]) -> Stage:
    """A stage made of two, field by field."""
    return Stage(**{name: mix(getattr(one, name), getattr(other, name)) for name in STAGE_FIELDS})


def _layer_parts(
    job: TrainingJob, found: Units, x: Columns, pace: StepTimes, which: Ints, sync: Sync, joined: Floats
) -> dict[str, Floats]:
    """Seconds of one layer and micro-batch by part, recomputation and sharded parameters included.

    Of the ``joined`` share of micro-batches one computes while another's tokens travel between experts.
    """
    f = job.framework
    again = np.choose(x.recompute, [np.zeros(len(x)), pace.again_selective_s[which], pace.again_full_s[which]])
    if x.recompute_modules.any():
        again = np.where(x.recompute_modules > 0, modules_again_s(found, pace, module_bits(x), which), again)
    forward, backward = pace.forward_s[which], pace.input_gradient_s[which]
    weights = pace.weight_gradient_s[which]
    tensor = pace.tensor_forward_s[which] + pace.tensor_backward_s[which]
    context = pace.context_forward_s[which] + pace.context_backward_s[which]
    expert = pace.expert_forward_s[which] + pace.expert_backward_s[which]
    if joined.any():
        hidden = _beside(expert, forward + backward + weights + again, f.contention_ratio)
        expert = joined * np.minimum(hidden, expert) + (1.0 - joined) * expert
    gather, rest = sync.layer_gather_s, sync.layer_regather_s + sync.layer_reduce_s
    if f.overlaps_parameters:  # the next layer's parameters travel while this one computes
        work, slow, one = backward + weights + again, f.contention_ratio, 1.0 / found.num_layers
        gather = (1.0 - one) * _beside(gather, forward, slow) + one * gather
        last = _beside(sync.layer_regather_s, work, slow) + sync.layer_reduce_s
        rest = (1.0 - one) * _beside(rest, work, slow) + one * last
    offloaded = np.zeros(len(x))
    if job.activation_offload_bytes_per_s:  # one layer's leaves, and the next one's comes back, while a layer computes
        away_s = saved_bytes_each(job, x, found, which) / job.activation_offload_bytes_per_s
        offloaded = np.maximum(away_s - forward, 0.0) + np.maximum(away_s - (backward + weights + again), 0.0)
    return {
        "forward": forward,
        "backward": backward,
        "weight gradients": weights,
        "recomputation": again,
        "activation offloading": offloaded,
        "tensor parallel": tensor,
        "context parallel": context,
        "expert parallel": expert,
        "sharding": gather + rest + sync.layer_copy_s,
        "launches": pace.host_forward_s[which] + pace.host_backward_s[which],
    }


def _beside(collective_s: Floats, work_s: Floats, contention_ratio: float) -> Floats:
    """Time that a collective adds to work beside it."""
    return np.maximum(collective_s - work_s, 0.0) + (contention_ratio - 1.0) * np.minimum(collective_s, work_s)


def ends_s(job: TrainingJob, sync: Sync) -> Floats:
    """Waits of a micro-batch for a sharded embedding and head: nothing runs before the first parameters are there, nor
    after the last gradients.
    """
    f = job.framework
    beside = f.contention_ratio - 1.0 if f.overlaps_parameters else 1.0
    return sync.start_s + sync.end_s + beside * sync.apart_s


Triple = tuple[Floats, Floats, Floats]


def _slowest(
    found: Units, x: Columns, which: Ints, layers: StageLayers, each: dict[str, Floats], ends: tuple[Triple, Triple]
) -> tuple[dict[str, Floats], Triple]:
    """The slowest stage's parts of one micro-batch; and F, B, W of the others' mean, which the bubble is made of.

    The slowest is whichever takes longest: the first with the embedding, the last with the head, or a fuller one in
    between. Ranks of a mirrored pipeline hold both ends, and half of the micro-batches meet each.
    """
    embedding, head = (tuple(v[which] for v in end) for end in ends)
    one = (x.pp == 1).astype(np.float64)
    half = 0.5 * is_mirrored(x)
    places = (
        (layers.num_first + half * (layers.num_last - layers.num_first), 1.0 - half, np.maximum(one, half)),
        (layers.num_last + half * (layers.num_first - layers.num_last), np.maximum(one, half), 1.0 - half),
        (layers.num_middle, 0.0 * one, 0.0 * one),
    )  # layers, embeddings and heads of a place
    seconds = sum(each.values(), np.zeros(1))
    totals = np.array([n * seconds + e * sum(embedding) + h * sum(head) for n, e, h in places])
    chosen = np.argmax(totals, axis=0)
    held, low, high = (np.choose(chosen, [place[i] for place in places]) for i in range(3))
    is_part = (x.recompute == 2) & (x.recompute_layers > 0)
    part = np.where(is_part, np.minimum(x.recompute_layers / held, 1.0), 1.0)
    each = each | {"recomputation": each["recomputation"] * part}
    busy = {name: held * value for name, value in each.items()}
    for i, name in enumerate(("forward", "backward", "weight gradients")):
        busy[name] = busy[name] + low * embedding[i] + high * head[i]
    others = np.maximum(x.pp - 1, 1)
    left = (found.num_layers - held) / others
    waits = 0.5 * sum(
        (each[n] for n in ("tensor parallel", "context parallel", "expert parallel", "sharding", "launches")),
        np.zeros(1),
    )
    rest = tuple(((1.0 - low) * e + (1.0 - high) * h) / others for e, h in zip(embedding, head, strict=True))
    return busy, (
        left * (each["forward"] + waits) + rest[0],
        left * (each["backward"] + each["recomputation"] + waits) + rest[1],
        left * each["weight gradients"] + rest[2],
    )


@lru_cache(maxsize=8)  # time, memory and parameters of the same layouts ask for it
def is_mirrored(x: Columns) -> Floats:
    """1 where ranks hold a stage of either end, as DualPipe's do."""
    mirrored = np.array([get_schedule(name).placement == "mirrored" for name in x.schedules])
    return (mirrored[x.schedule] & (x.pp > 1)).astype(np.float64)


Numbers = list[tuple[NDArray[np.bool_], Pipeline]]
"""Layouts with a pipeline by schedule, and the schedule's numbers for them."""


def _sent_and_joined(x: Columns, schedules: Numbers) -> tuple[Floats, Floats]:
    """Hand-overs a micro-batch, and the share of micro-batches beside each other, by each layout's schedule."""
    sends, joined = np.zeros(len(x)), np.zeros(len(x))
    for here, numbers in schedules:
        sends[here], joined[here] = numbers.sends_ratio, numbers.joined_ratio
    return sends, joined


def _idle_s(x: Columns, schedules: Numbers, base: Triple) -> Floats:
    """Idle seconds by each layout's schedule."""
    idle = np.zeros(len(x))
    for here, numbers in schedules:
        idle[here] = numbers.idle_s(base[0][here], base[1][here], base[2][here])
    return idle


def _chunk_ratio(num_layers: int, x: Columns, layers: StageLayers) -> Floats:
    """The fullest chunk over the mean one: where chunks do not come out even, the pipeline fills at its pace."""
    chunks, description = x.pp * x.vp, is_told(x)
    ratio = -(-num_layers // chunks) * chunks / num_layers
    if description.any():
        ratio = np.where(description, np.maximum(layers.most, layers.num_last) * x.pp / num_layers, ratio)
    return np.where(x.vp > 1, ratio, 1.0)


def _numbers(x: Columns, m: Floats) -> Iterator[tuple[NDArray[np.bool_], Pipeline]]:
    """Layouts with a pipeline by schedule, and the schedule's numbers for them."""
    for number, name in enumerate(x.schedules):
        here = (x.schedule == number) & (x.pp > 1)
        if here.any():
            yield here, get_schedule(name)(x.pp[here], x.vp[here], m[here].astype(np.int64))


def in_flight_of(x: Columns, m: Floats, schedules: Numbers | None = None) -> tuple[Floats, Floats, Floats]:
    """Micro-batches in flight on the fullest and on the last rank, and copies of the parameters, by schedule."""
    most, least, copies = np.ones(len(x)), np.ones(len(x)), np.ones(len(x))
    for here, numbers in _numbers(x, m) if schedules is None else schedules:
        most[here], least[here] = numbers.in_flight_ratio, numbers.last_in_flight_ratio
        copies[here] = numbers.parameter_copies_ratio
    return most, least, copies


def _hand_overs(job: TrainingJob, x: Columns, found: Units, m: Floats, sends: Floats) -> Floats:
    """Activations to the next stage and gradients back: all of them, or where they overlap those of the fill alone."""
    if int(x.pp.max()) == 1:
        return np.zeros(len(x))
    ways = x.cp * np.where(x.is_sequence_parallel, x.tp, 1)
    message = ELEMENT_BYTES * x.micro_batch * job.seq_len * job.model.hidden_size / ways
    stride = x.tp * x.cp * x.dp
    first, group = distinct(stride[None, :])
    curve = curves_of(job, "send_recv", tuple((2, int(stride[i])) for i in first))
    once = curve.time_s(group, message)
    ratio = np.where(stride < job.cluster.devices_per_node, job.framework.network_ratio, job.framework.scaleout_ratio)
    times = x.pp - 1.0 if job.framework.overlaps_pipeline else x.pp - 1.0 + m * sends
    return np.where(x.pp > 1, 2.0 * once * ratio * times, 0.0)


def _exchange_s(x: Columns, pace: StepTimes, which: Ints) -> Floats:
    """Exchange of tokens within the products and the recomputation of one layer's backward pass."""
    again = (x.recompute == 2).astype(np.float64)
    if x.recompute_modules.any():
        again = np.maximum(again, (x.recompute_modules > 0) * module_bits(x)[MODULES.index("moe")])
    forward = pace.expert_forward_s[which] + pace.expert_beside_forward_s[which]
    return pace.expert_beside_backward_s[which] + again * forward


def _exposed(
    job: TrainingJob,
    x: Columns,
    busy: dict[str, Floats],
    sync: Sync,
    stage: Stage,
    layers: StageLayers,
    exchange_s: Floats,
) -> dict[str, Floats]:
    """Exposed time of the gradients' reduction and the parameters' gathering. ``exchange_s`` of one layer keeps the
    links from the gradients.
    """
    f, held = job.framework, np.maximum(layers.most, layers.num_last)
    backward = busy["backward"] + busy["weight gradients"] + busy["recomputation"]
    gather_s = sync.gather_s
    wire = np.maximum(gradient_bytes(job) * (stage.dense_parameters + stage.expert_parameters), 1.0)
    last = np.minimum(f.bucket_bytes / wire, 1.0)
    found = GradientSum(
        reduce_s=sync.reduce_s,
        idle_s=np.maximum(backward - held * exchange_s, 0.0),
        last_bucket_frac=last,
        last_layer_frac=1.0 / np.maximum(held, 1.0),
        contention_ratio=f.contention_ratio,
    )
    technique = gradient_technique(job)
    reduce_s = technique.rule(found, knob_array(technique))
    if f.overlaps_parameters:
        gather_s = np.maximum(_beside(gather_s, busy["forward"], f.contention_ratio), last * gather_s)
    return {"gradient reduction": reduce_s, "parameter gathering": gather_s}


def _moves_s(job: TrainingJob, x: Columns, stage: Stage) -> Floats:
    """A step's share of what a new placement of experts sends."""
    moved = moved_parameters(job, x, stage.expert_parameters)
    if not moved.any():
        return moved
    message = expert_state_bytes(job, x) * moved
    return Groups(job, x.ep, x.etp).time_s("all_to_all", message) / job.placement_interval_steps


def _flops(job: TrainingJob, found: Units, x: Columns, which: Ints, m: Floats) -> tuple[Floats, Floats, Floats]:
    """Operations of a step: the model's over all devices, one mean device's with recomputation and padding, and those
    of them in the wide format.
    """
    layer = found.layer
    linear, core, padded = layer.forward_flops[which], layer.attention_flops[which], layer.padded_flops[which]
    ends = found.head.forward_flops[which]
    backward = 1.0 if job.task in FROZEN else 2.0
    per_replica = m * (found.num_layers * ((1.0 + backward) * linear + 3.0 * core) + (1.0 + backward) * ends)
    layers = found.num_layers / x.pp
    part = np.where(x.recompute_layers > 0, np.minimum(x.recompute_layers / layers, 1.0), 1.0)
    is_full = x.recompute == 2
    linear_again = is_full * part * (linear + padded - layer.unmade_flops[which])
    core_again = np.where(is_full, part, x.recompute == 1) * core
    beside = m * found.num_layers * (linear_again + core_again + (1.0 + backward) * padded)
    in_wide = job.wide_layers_frac * ((1.0 + backward) * (linear + padded) + linear_again) + 3.0 * core + core_again
    wide = m * (found.num_layers * in_wide + (1.0 + backward) * ends)
    ways = x.tp * x.cp
    return per_replica * ways * x.dp, (per_replica + beside) / x.pp, wide / x.pp


def _moved(job: TrainingJob, found: Units, x: Columns, which: Ints, m: Floats, update: Floats) -> Floats:
    """Bytes through one device's memory: of products by their sizes, of streaming work by the time it takes."""
    layer, f = found.layer, job.framework
    passes = np.where(x.recompute == 2, 4.0, 3.0)
    streams = f.elementwise_ratio * (layer.stream_forward_s + layer.stream_backward_s)[which]
    each = passes * layer.forward_bytes[which] + streams * job.cluster.device.memory_bandwidth_bytes_per_s
    return m * found.num_layers / x.pp * each + update * job.cluster.device.memory_bandwidth_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bounds:
    """Lower bounds of a layout, cheaper than the full prediction; arrays of the layouts."""

    time_s: Floats
    memory_bytes: Floats


def bounds_of(job: TrainingJob, x: Columns, ready: tuple[Units, Ints]) -> Bounds:
    """Device work of the slowest stage and the update alone; state and one micro-batch's activations alone."""
    found, which = ready
    pace = layer_pace(found)
    m = job.global_batch / (x.dp * x.micro_batch)
    layers = stage_layers(found.num_layers, x)
    first, _, last = placed(x, stages(found, x, which, stage_kinds(found, x, layers)))
    each = (pace.forward_s + pace.input_gradient_s + pace.weight_gradient_s)[which]
    boundary_bytes = found.layer.boundary_bytes[which]
    return Bounds(
        time_s=m * layers.num_middle * each,
        memory_bytes=np.maximum(
            state_bytes(job, x, first) + layers.num_first * boundary_bytes,
            state_bytes(job, x, last) + layers.num_last * boundary_bytes,
        ),
    )
