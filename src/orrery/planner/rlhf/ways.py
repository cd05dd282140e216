"""Ways to run a call: its layout, its micro-batches, and whether a frozen model waits in host memory.

train: ``num_mini_batches`` steps of the training floor. infer: the forward part of the same. generate: a static batch
on each replica, in waves. All layouts of a model are asked for at once; ways that another way of the same cut beats in
time and memory are left out.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.exchanges import ELEMENT_BYTES, collective_s
from orrery.execution.train.framework import Framework
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import units
from orrery.planner.rlhf.dataflow import Call, RlhfJob
from orrery.planner.rlhf.generation import Generation
from orrery.training.columns import choices, columns_of
from orrery.training.memory import MemoryBytes
from orrery.training.pace import end_pace, layer_pace, network_ratio
from orrery.training.step import step_of

Floats = NDArray[np.float64]

STATE = ("weights", "gradients", "optimizer")
"""State that a trained model keeps from one iteration to the next."""

MICRO_BATCHES = (1, 2, 4, 8)
"""Sequences of a micro-batch; more of them change next to nothing but memory."""

WAVES = (1, 2, 4, 8)
"""Generation takes its prompts at once or in so many turns, so that their cache fits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallPlacement:
    """One way to run a call on ``tp * pp * dp`` devices; bytes are of the fullest one."""

    tp: int
    pp: int
    dp: int
    micro_batch: int  # sequences; of generation: waves
    time_s: float
    resident_bytes: float  # held through the iteration
    weights_bytes: float  # a copy that the call needs, unless its mesh holds the same cut already
    work_bytes: float  # only while the call runs
    is_offloaded: bool = False  # weights wait in host memory between iterations
    sharding: str = "none"

    @property
    def num_devices(self) -> int:
        """Devices of the whole cut."""
        return self.tp * self.pp * self.dp

    @property
    def cut(self) -> tuple[int, int, int, str]:
        """Settings that determine which parameters a device holds."""
        return self.tp, self.pp, self.dp, self.sharding

    @property
    def peak_bytes(self) -> float:
        """The fullest device with this call alone."""
        return self.resident_bytes + self.weights_bytes + self.work_bytes

    def __str__(self) -> str:
        words = f"tp{self.tp} pp{self.pp} dp{self.dp} mb{self.micro_batch}"
        words += f" {self.sharding}" if self.sharding != "none" else ""
        return words + (" offloaded" if self.is_offloaded else "")


def cuts(job: RlhfJob, role: str, sizes: Iterable[int]) -> Iterator[tuple[int, int, int]]:
    """(tp, pp, dp) in powers of two: tensor parallelism inside a node, no more stages than layers."""
    layers, node = job.models[role].num_layers, job.cluster.devices_per_node
    powers = [1 << i for i in range(job.cluster.num_devices.bit_length())]
    for size in sizes:
        for tp, pp in product(powers, powers):
            if tp <= node and pp <= layers and tp * pp <= size:
                yield tp, pp, size // (tp * pp)


def all_ways(job: RlhfJob, call: Call, sizes: Iterable[int]) -> list[CallPlacement]:
    """Every way on meshes of those sizes, whether it fits or not."""
    found = list(cuts(job, call.role, sizes))
    if call.kind == "train":
        return train_ways(job, call.role, found)
    return infer_ways(job, call.role, found) if call.kind == "infer" else generate_ways(job, call.role, found)


def worth_having(job: RlhfJob, found: Iterable[CallPlacement]) -> dict[int, tuple[CallPlacement, ...]]:
    """Select the placements that fit a device and that no other of the same cut beats, by number of devices."""
    by_cut: dict[tuple[int, int, int], list[CallPlacement]] = {}
    for way in found:
        if way.peak_bytes <= job.room_bytes:
            by_cut.setdefault((way.tp, way.pp, way.dp), []).append(way)
    out: dict[int, tuple[CallPlacement, ...]] = {}
    for members in by_cut.values():
        size = members[0].num_devices
        out[size] = (*out.get(size, ()), *undominated(members))
    return out


def ways(job: RlhfJob, call: Call, sizes: Iterable[int]) -> dict[int, tuple[CallPlacement, ...]]:
    """Every way worth having, by number of devices; none where the model does not fit."""
    return worth_having(job, all_ways(job, call, sizes))


def undominated(members: list[CallPlacement]) -> list[CallPlacement]:
    """Select the placements that no other beats in time, resident and working memory at once."""
    retained: list[CallPlacement] = []
    for way in sorted(members, key=lambda w: (w.time_s, w.resident_bytes, w.work_bytes)):
        if not any(k.resident_bytes <= way.resident_bytes and k.work_bytes <= way.work_bytes for k in retained):
            retained.append(way)
    return retained


def micro_batches(sequences: int, dp: int) -> list[int]:
    """Powers of two that divide a replica's sequences; none where there are fewer sequences than replicas."""
    if sequences % dp:
        return []
    return [b for b in MICRO_BATCHES if sequences // dp % b == 0]


def train_ways(
    job: RlhfJob,
    role: str,
    found: list[tuple[int, int, int]],
    *,
    framework: Framework | None = None,
    sharding: str = "zero1",
) -> list[CallPlacement]:
    """Updates of one model: ``num_mini_batches`` steps an epoch, activations of every layer recomputed."""
    each = job.batch // job.num_mini_batches
    layouts = [
        TrainingLayout(
            tp=tp,
            pp=pp,
            dp=dp,
            micro_batch=mb,
            recompute="full",
            sharding=sharding if dp > 1 else "none",  # pyright: ignore[reportArgumentType]
        )
        for tp, pp, dp in found
        for mb in micro_batches(each, dp)
    ]
    if not layouts:
        return []
    steps = step_of(job.training_job(role, each, framework), columns_of(layouts))
    state = np.maximum(_state(steps.first), _state(steps.last))
    work = np.maximum(steps.first.total - _state(steps.first), steps.last.total - _state(steps.last))
    return [
        CallPlacement(
            tp=x.tp,
            pp=x.pp,
            dp=x.dp,
            micro_batch=x.micro_batch,
            time_s=float(job.num_epochs * job.num_mini_batches * steps.time_s[i]),
            resident_bytes=float(state[i]),
            weights_bytes=0.0,
            work_bytes=float(work[i]),
            sharding=_held_as(x),
        )
        for i, x in enumerate(layouts)
    ]


def _state(held: MemoryBytes) -> Floats:
    return sum((held.parts[name] for name in STATE), np.zeros(1))


def _held_as(layout: TrainingLayout) -> str:
    """Optimizer shards leave every replica with all its parameters; only ZeRO-3 deals them out."""
    return "zero3" if layout.sharding == "zero3" else "none"


def infer_ways(
    job: RlhfJob,
    role: str,
    found: list[tuple[int, int, int]],
    *,
    framework: Framework | None = None,
    sharding: str = "none",
) -> list[CallPlacement]:
    """One forward pass over all sequences: (micro-batches + pp - 1) times the fullest stage, and the hand-overs.

    A model that is never trained is resident, or waits in host memory and comes up its link before the call.
    """
    layouts = [
        TrainingLayout(tp=tp, pp=pp, dp=dp, micro_batch=mb)
        for tp, pp, dp in found
        for mb in micro_batches(job.batch, dp)
    ]
    if not layouts:
        return []
    training = job.training_job(role, job.batch, framework)
    f, x = training.framework, columns_of(layouts)
    choice, which = choices(x)
    training_units = units(training, choice)
    pace, head = layer_pace(training_units), end_pace(training_units, training_units.head)[0]
    layers = -(-training_units.num_layers // x.pp)
    layer_s = (pace.forward_s + pace.tensor_forward_s + pace.host_forward_s)[which]
    parameters = training_units.layer.dense_parameters[which]
    if sharding == "zero3":
        gather = network_ratio(training_units, training_units.choice.tp * x.dp.max())[which] * collective_s(
            training, "all_gather", x.dp, x.tp, ELEMENT_BYTES * parameters
        )
        layer_s = np.maximum(layer_s, gather) if f.overlaps_parameters else layer_s + gather
    stage_s = layers * layer_s + head[which]
    moved = ELEMENT_BYTES * x.micro_batch * job.seq_len * training.model.hidden_size / np.where(x.pp > 1, x.tp, 1)
    hop_s = collective_s(training, "send_recv", np.where(x.pp > 1, 2, 1), x.tp * x.dp, moved)
    turns = job.batch / (x.dp * x.micro_batch) + x.pp - 1.0
    time_s = turns * stage_s + np.where(x.pp > 1, (x.pp - 1.0) * hop_s, 0.0)
    first, last = training_units.embedding.parameters[which], training_units.head.parameters[which]
    ends = np.where(x.pp > 1, np.maximum(first, last), first + last)
    weights = ELEMENT_BYTES * (layers * parameters + ends)
    weights = weights / np.where(sharding == "zero3", x.dp, 1)
    work = (
        training_units.layer.everything_bytes[which]
        + f.logits_bytes * training_units.head.logit_elements[which]
        + f.fixed_bytes
    )
    work = work + (2.0 * ELEMENT_BYTES * parameters if sharding == "zero3" else 0.0)
    up_s = weights / job.cluster.device.host.each_way_bytes_per_s
    is_frozen = not job.trains(role)
    out: list[CallPlacement] = []
    for i, y in enumerate(layouts):
        held = float(weights[i])
        way = CallPlacement(
            tp=y.tp,
            pp=y.pp,
            dp=y.dp,
            micro_batch=y.micro_batch,
            time_s=float(time_s[i]),
            sharding=sharding,
            resident_bytes=held if is_frozen else 0.0,
            weights_bytes=0.0 if is_frozen else held,
            work_bytes=float(work[i]),
        )
        out.append(way)
        if is_frozen:
            out.append(
                replace(
                    way, time_s=way.time_s + float(up_s[i]), resident_bytes=0.0, weights_bytes=held, is_offloaded=True
                )
            )
    return out


def generate_ways(
    job: RlhfJob, role: str, found: list[tuple[int, int, int]], *, is_even: bool = True
) -> list[CallPlacement]:
    """A static batch on each replica, in one or several waves; the caches of a wave are its working memory.

    Unless ``is_even``, the fullest replica may have a sequence more than others.
    """
    generation = Generation(job, role)
    out: list[CallPlacement] = []
    for tp, pp, dp in found:
        for waves in WAVES:
            each = -(-job.batch // (dp * waves))
            if each < pp or (is_even and job.batch % (dp * waves)):
                continue
            run = generation.run(tp, pp, each, waves)
            out.append(
                CallPlacement(
                    tp=tp,
                    pp=pp,
                    dp=dp,
                    micro_batch=waves,
                    time_s=run.time_s,
                    resident_bytes=0.0,
                    weights_bytes=run.weights_bytes,
                    work_bytes=run.work_bytes,
                )
            )
    return out
