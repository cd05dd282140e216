"""The work of a training step whose states leave the device, from the same layers that every training step is made of;
and where the seconds of such a step go.

A part is what the step gets shorter by when its lane becomes infinitely fast, lanes taken one after the other from the
slowest tier up: so parts add up to the step, and what hides behind other work counts nothing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Any

import numpy as np

from orrery.execution.offload.step import OffloadedStep
from orrery.execution.offload.tiers import Tiers
from orrery.execution.offload.work import Work
from orrery.execution.train.cut import choice_of
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import Units, units
from orrery.models.model import Block, Linear
from orrery.training.columns import columns_of
from orrery.training.pace import StepTimes, end_pace, layer_pace
from orrery.training.stage_kinds import stage_kinds
from orrery.training.stage_layers import stage_layers
from orrery.training.step import stages

WIDE_BYTES, WIDE_STATE_BYTES, NARROW_STATE_BYTES = 4.0, 8.0, 12.0
MAX_PLAYED = 6
"""Micro-batches that are played out; those after them take what the last of these adds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieces:
    """A layer's work, and how much of its seconds is not the device's own; seconds of one layer and micro-batch."""

    work: Work
    tensor_forward_s: float
    tensor_backward_s: float
    launch_forward_s: float
    launch_backward_s: float
    outer_weight_s: float  # of both ends: gradients of their weights


def pieces_of(job: TrainingJob, layout: TrainingLayout) -> Pieces:
    """Split the work of one device; every layer is the average one, the embedding and the head stand around them."""
    found = units(job, choice_of([layout]))
    pace, layer = layer_pace(found), found.layer
    ends = [tuple(float(v[0]) for v in end_pace(found, end)) for end in (found.embedding, found.head)]
    wide = WIDE_BYTES if job.recipe.wide_format not in ("bf16", "fp16") else 2.0
    columns = columns_of([layout])
    counts = stage_kinds(found, columns, stage_layers(found.num_layers, columns))
    _, middle, whole = stages(found, columns, np.zeros(1, dtype=np.int64), counts)
    inner = float(middle.dense_parameters[0] + middle.expert_parameters[0])
    forward_s = _sum(pace, "forward_s", "tensor_forward_s", "host_forward_s")
    backward_s = _sum(pace, "input_gradient_s", "weight_gradient_s", "tensor_backward_s", "host_backward_s")
    work = Work(
        num_layers=found.num_layers,
        num_layer_parameters=inner / found.num_layers,
        num_outer_parameters=float(whole.dense_parameters[0] + whole.expert_parameters[0]) - inner,
        forward_s=forward_s,
        backward_s=backward_s,
        weight_gradient_s=float(pace.weight_gradient_s[0]),
        recompute_s=float(pace.again_full_s[0]),
        outer_forward_s=sum(e[0] for e in ends),
        outer_backward_s=sum(e[1] + e[2] for e in ends),
        activation_bytes=float(layer.everything_bytes[0]),
        kept_bytes=_kept_bytes(found, layout, wide),
        boundary_bytes=float(layer.boundary_bytes[0]),
        logits_bytes=job.framework.logits_bytes * float(found.head.logit_elements[0]),
        num_largest_parameters=max(x.num_parameters for b in _blocks(job) for x in b.linears) / layout.tp,
        num_adapter_parameters=found.num_layers * float(layer.trained_parameters[0]) / job.adapter_rank,
        num_micro_batches=job.num_micro_batches(layout),
        parameter_bytes=wide,
        gradient_bytes=wide,
        state_bytes=WIDE_STATE_BYTES if wide == WIDE_BYTES else NARROW_STATE_BYTES,
    )
    return Pieces(
        work=work,
        tensor_forward_s=float(pace.tensor_forward_s[0]),
        tensor_backward_s=float(pace.tensor_backward_s[0]),
        launch_forward_s=float(pace.host_forward_s[0]),
        launch_backward_s=float(pace.host_backward_s[0]),
        outer_weight_s=sum(e[2] for e in ends),
    )


def _sum(pace: StepTimes, *names: str) -> float:
    return sum(float(getattr(pace, name)[0]) for name in names)


def _blocks(job: TrainingJob) -> tuple[Block, ...]:
    return (*job.model.encoder, *job.model.blocks)


def _kept_bytes(found: Units, layout: TrainingLayout, element_bytes: float) -> float:
    """Outputs of products and of attention, of the mean layer: who keeps them recomputes element-wise work alone."""
    job = found.job
    tokens = layout.micro_batch * job.seq_len

    def width(block: Block) -> float:
        return job.model.hidden_size + sum(_own_width(x, layout.tp) for x in block.linears) + _expert_width(block)

    return element_bytes * tokens * sum(b.count * width(b) for b in _blocks(job)) / found.num_layers


def _own_width(linear: Linear, tp: int) -> float:
    """Elements a token that a product leaves on a device: its output, or of attention's last one its input."""
    if linear.name == "out":
        return linear.in_features / tp
    return linear.out_features / tp if linear.shard == "column" else 0.0


def _expert_width(block: Block) -> float:
    e = block.experts
    return e.experts_per_token * (e.hidden_size + (2.0 if e.is_gated else 1.0) * e.ffn_size) if e else 0.0


ROUNDING = 1e-9
"""Share of the passes below which a difference of sums is nothing."""

Rule = Callable[[Work, Tiers], OffloadedStep]
"""A technique with its knobs filled in."""


def played(rule: Rule, work: Work, tiers: Tiers) -> OffloadedStep:
    """The step of all micro-batches: the first few are played out, each further one adds what the last of them did."""
    more = work.num_micro_batches - MAX_PLAYED
    if more <= 0:
        return rule(work, tiers)
    last = rule(replace(work, num_micro_batches=MAX_PLAYED), tiers)
    before = rule(replace(work, num_micro_batches=MAX_PLAYED - 1), tiers)
    busy = {k: v + more * (v - before.busy_s[k]) for k, v in last.busy_s.items()}
    return replace(last, step_s=last.step_s + more * (last.step_s - before.step_s), busy_s=busy)


WITHOUT_WAITING: Mapping[str, dict[str, float]] = {
    "waiting for drives": {"nvme_read_bytes_per_s": inf, "nvme_write_bytes_per_s": inf},
    "waiting for the host's update": {"host_memory_bytes_per_s": inf, "update_bytes_per_s": inf},
    "waiting for the host link": {"host_link_each_way_bytes_per_s": inf, "pageable_bytes_per_s": inf},
    "waiting for other ranks": {"collective_bytes_per_s": inf},
    "update": {"gpu_memory_bytes_per_s": inf},
}
"""The remedy for each lane's part of a step."""


def parts_of(rule: Rule, pieces: Pieces, tiers: Tiers, num_forward: float) -> dict[str, float]:
    """Seconds of the step by part; ``num_forward`` passes are forward passes, what is left of them recomputation."""
    parts, work = dict[str, float](), pieces.work
    before_s = played(rule, work, tiers).step_s

    def take(name: str, now_work: Work, now_tiers: Tiers) -> None:
        nonlocal before_s
        now_s = min(before_s, played(rule, now_work, now_tiers).step_s)
        parts[name] = before_s - now_s
        before_s = now_s

    for name, rates in WITHOUT_WAITING.items():
        tiers = replace(tiers, **rates)
        take(name, work, tiers)
    for name, change in _without(pieces):
        work = replace(work, **{k: max(0.0, getattr(work, k) - v) for k, v in change.items()})
        take(name, work, tiers)
    once_s = work.num_micro_batches * (work.num_layers * work.forward_s + work.outer_forward_s)
    again_s = before_s - num_forward * once_s
    parts["recomputation"] = again_s if again_s > ROUNDING * before_s else 0.0
    parts["forward"] = before_s - parts["recomputation"]
    return parts


def _without(pieces: Pieces) -> list[tuple[str, dict[str, Any]]]:
    """Seconds of a layer saved, part by part; when all are gone the forward pass alone is left."""
    p, w = pieces, pieces.work
    own_s = w.backward_s - p.tensor_backward_s - p.launch_backward_s - w.weight_gradient_s
    return [
        (
            "tensor parallel",
            {"forward_s": p.tensor_forward_s, "recompute_s": p.tensor_forward_s, "backward_s": p.tensor_backward_s},
        ),
        (
            "launches",
            {"forward_s": p.launch_forward_s, "recompute_s": p.launch_forward_s, "backward_s": p.launch_backward_s},
        ),
        (
            "weight gradients",
            {
                "backward_s": w.weight_gradient_s,
                "weight_gradient_s": w.weight_gradient_s,
                "outer_backward_s": p.outer_weight_s,
            },
        ),
        ("backward", {"backward_s": own_s, "outer_backward_s": w.outer_backward_s - p.outer_weight_s}),
    ]
