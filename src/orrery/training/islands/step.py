"""One step of a pipeline whose stages differ in layers and in the network of their data-parallel rings.

The pipeline is played out piece by piece (1F1B); every stage then sums its gradients over its own ring, all meet for
the norm of the gradients, update, and gather what is sharded. A stage that ends early reduces early, so slow rings
belong where the pipeline ends first: at its last stages.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knob_array
from orrery.execution.train.exchanges import ELEMENT_BYTES, collective_s
from orrery.execution.train.gradient_sum import GradientSum
from orrery.execution.train.hidden import gradient_technique
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import Units, units
from orrery.hardware.device import Link
from orrery.training.columns import choices, columns_of
from orrery.training.islands.fleet import Fleet, Order, hop_links, stage_groups, with_link
from orrery.training.pace import end_pace, layer_pace
from orrery.training.schedules.registry import get_schedule
from orrery.training.schedules.timeline import PieceSeconds, play_schedule
from orrery.training.sync import Stage, gradient_bytes, sync_of, update_s


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupedStep:
    """A step, and what each stage makes of it."""

    layers: tuple[int, ...]  # of each stage
    groups: tuple[frozenset[int], ...]  # that each stage touches
    stage_end_s: tuple[float, ...]  # when the stage's last backward pass ends
    reduce_s: tuple[float, ...]  # exposed part of the gradients' reduction
    finish_s: tuple[float, ...]  # update and gathering of parameters
    time_s: float
    hardware_flops: float  # of one step over all devices, recomputation included

    def flops_per_s_per_device(self, num_devices: int) -> float:
        """Operations a second of one device, as Megatron-LM counts them: with recomputation. [narayanan-2021]"""
        return self.hardware_flops / self.time_s / num_devices


def grouped_step(
    job: TrainingJob, layout: TrainingLayout, fleet: Fleet, layers: Sequence[int], order: Order = "grouped"
) -> GroupedStep:
    """Cost a step with so many layers on each stage."""
    x = columns_of([layout])
    found = units(job, choices(x)[0])
    if sum(layers) != found.num_layers or len(layers) != layout.pp or min(layers) < 1:
        raise ScenarioError(
            f"islands: layers = {list(layers)} on {layout.pp} stages; write {layout.pp} numbers from 1 that add up to "
            f"{found.num_layers}."
        )
    if layout.schedule != "1f1b" or layout.vp > 1 or layout.cp > 1 or layout.ep > 1:
        raise ScenarioError(f"islands: {layout}; write a layout of tp, pp and dp under the 1f1b schedule.")
    touched = stage_groups(job, layout, fleet, order)
    seconds = _pieces(job, layout, found, layers, hop_links(job, layout, fleet, order))
    played = play_schedule(get_schedule("1f1b"), layout.pp, 1, job.num_micro_batches(layout), seconds)
    ends = [rank[-1].end_s for rank in played.ranks]
    reduces, finishes = list[float](), list[float]()
    for p, groups in enumerate(touched):
        backward_s = float(seconds.backward_s[p, 0] + seconds.weight_s[p, 0])
        reduce_s, finish_s = _ring(with_link(job, fleet.link(groups)), layout, found, layers, p, backward_s)
        reduces.append(reduce_s)
        finishes.append(finish_s)
    time_s = max(e + r for e, r in zip(ends, reduces, strict=True)) + max(finishes) + job.framework.step_s
    return GroupedStep(
        layers=tuple(layers),
        groups=tuple(frozenset(g) for g in touched),
        stage_end_s=tuple(ends),
        reduce_s=tuple(reduces),
        finish_s=tuple(finishes),
        time_s=time_s,
        hardware_flops=_flops(job, layout, found),
    )


def _pieces(
    job: TrainingJob, layout: TrainingLayout, found: Units, layers: Sequence[int], hops: Sequence[Link | None]
) -> PieceSeconds:
    """Forward, backward and weight-gradient seconds of every stage, ends included, and the slowest hand-over."""
    pace, (embedding, head) = layer_pace(found), (end_pace(found, found.embedding), end_pace(found, found.head))
    again = {"none": 0.0 * pace.again_full_s, "selective": pace.again_selective_s, "full": pace.again_full_s}
    forward = float((pace.forward_s + pace.tensor_forward_s + pace.host_forward_s)[0])
    backward = pace.input_gradient_s + pace.tensor_backward_s + pace.host_backward_s + again[layout.recompute]
    each = np.array([forward, float(backward[0]), float(pace.weight_gradient_s[0])])
    table = np.outer(np.array(layers, dtype=np.float64), each)
    table[0] += [float(v[0]) for v in embedding]
    table[-1] += [float(v[0]) for v in head]
    return PieceSeconds(
        forward_s=table[:, 0:1],
        backward_s=table[:, 1:2],
        weight_s=table[:, 2:3],
        hand_over_s=_hand_over_s(job, layout, hops),
    )


def _hand_over_s(job: TrainingJob, layout: TrainingLayout, hops: Sequence[Link | None]) -> float:
    """Activations of a micro-batch over the slowest hop; the timeline knows one time for all hops."""
    ways = layout.tp if layout.is_sequence_parallel else 1
    message = np.array([ELEMENT_BYTES * layout.micro_batch * job.seq_len * job.model.hidden_size / ways])
    stride, f = np.array([layout.tp * layout.dp]), job.framework
    slowest = 0.0
    for link in hops:
        here = job if link is None else with_link(job, link)
        ratio = f.network_ratio if link is None else f.scaleout_ratio
        slowest = max(slowest, ratio * float(collective_s(here, "send_recv", np.array([2]), stride, message)[0]))
    return slowest


def _ring(
    job: TrainingJob, layout: TrainingLayout, found: Units, layers: Sequence[int], stage: int, backward_s: float
) -> tuple[float, float]:
    """Exposed reduction of a stage's gradients, and its update with the gathering of sharded parameters."""
    x, f = columns_of([layout]), job.framework
    layer = found.layer.dense_parameters
    none = 0.0 * layer
    embedding = found.embedding.parameters if stage == 0 else none
    head = found.head.parameters if stage == len(layers) - 1 else none
    dense = layers[stage] * layer + (embedding + head)
    held = Stage(
        dense_parameters=dense,
        expert_parameters=none,
        trained_parameters=dense,
        layer_dense_parameters=layer,
        layer_expert_parameters=none,
        embedding_parameters=embedding,
        head_parameters=head,
    )
    sync = sync_of(job, x, held)
    reduce_s, gather_s = float(sync.reduce_s[0]), float(sync.gather_s[0])
    last = min(f.bucket_bytes / (gradient_bytes(job) * float(dense[0])), 1.0)
    alone = GradientSum(
        reduce_s=np.array([reduce_s]),
        idle_s=np.array([backward_s]),
        last_bucket_frac=np.array([last]),
        last_layer_frac=np.array([1.0 / max(layers[stage], 1)]),
        contention_ratio=f.contention_ratio,
    )
    technique = gradient_technique(job)
    reduce_s = float(technique.rule(alone, knob_array(technique))[0])
    return reduce_s, float(update_s(job, x, held)[0]) + gather_s


def _flops(job: TrainingJob, layout: TrainingLayout, found: Units) -> float:
    """Forward once, backward twice, and forward again where it is recomputed, over all devices."""
    linear, core = float(found.layer.forward_flops[0]), float(found.layer.attention_flops[0])
    again = {"none": 0.0, "selective": core, "full": linear + core}[layout.recompute]
    once = found.num_layers * (3.0 * (linear + core) + again) + 3.0 * float(found.head.forward_flops[0])
    return once * job.num_micro_batches(layout) * layout.tp * layout.dp
