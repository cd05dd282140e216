"""One step of a training job's pipeline as a trace that viewers open: what every rank does when."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.execution.train.cut import choice_of
from orrery.execution.train.exchanges import ELEMENT_BYTES, curves_of
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.layout import TrainingLayout
from orrery.execution.train.units import units
from orrery.scenario.schema import Scenario
from orrery.training.columns import RECOMPUTES
from orrery.training.pace import end_pace, layer_pace
from orrery.training.schedules.registry import get_schedule
from orrery.training.schedules.schedule import Floats, Schedule
from orrery.training.schedules.timeline import PieceSeconds, Timeline, play_schedule
from orrery.training.schedules.trace_events import trace_events
from orrery.training.stage_layers import by_chunk

MAX_MICRO_BATCHES = 64
"""That are drawn: a trace of more is slow to open, and shows nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlayedStep:
    """The pipeline of one step, played out."""

    timeline: Timeline
    num_micro_batches: int
    notes: tuple[str, ...]

    def to_trace(self) -> Mapping[str, Any]:
        """The object that ui.perfetto.dev and chrome://tracing open."""
        return trace_events(self.timeline)


def played_step(job: TrainingJob, layout: TrainingLayout) -> PlayedStep:
    """The step of a layout with a pipeline; ScenarioError where it has none.

    Gradients' reduction and the update follow the last piece, and are not in it.
    """
    _check_pipeline(layout.pp)
    schedule, whole = get_schedule(layout.schedule), job.num_micro_batches(layout)
    drawn = _drawn(schedule, layout, whole)
    timeline = play_schedule(schedule, layout.pp, layout.vp, drawn, piece_seconds(job, layout, schedule))
    notes = (f"timeline: {drawn} of {whole} micro-batches are drawn",) if drawn < whole else ()
    return PlayedStep(timeline=timeline, num_micro_batches=drawn, notes=notes)


def check_timeline(scenario: Scenario, path: Path) -> None:
    """Refuse, before anything is computed, a trace of no pipeline and a path that cannot be written."""
    if scenario.offload:
        raise ScenarioError("timeline: is of a pipeline, and --offload has none; leave one of them out.")
    _check_pipeline(scenario.pp or 1)
    if path.is_dir():
        raise ScenarioError(f"timeline: {path} is a folder; write the name of a file, such as step.json.")
    if not path.parent.is_dir():
        raise ScenarioError(f"timeline: there is no folder {path.parent}; make it first, or write another name.")


def _check_pipeline(pp: int) -> None:
    if pp == 1:
        raise ScenarioError("timeline: there is no pipeline with pp = 1; write pp = 2 or more, or leave timeline out.")


def write_timeline(step: PlayedStep, path: Path) -> None:
    """The trace as a file, whole or not at all."""
    write_atomically(path, json.dumps(step.to_trace(), allow_nan=False))


def _drawn(schedule: Schedule, layout: TrainingLayout, whole: int) -> int:
    """The most micro-batches up to the limit with which the schedule runs; if it asks for more, the fewest."""
    sizes = schedule.sizes
    few = range(min(whole, MAX_MICRO_BATCHES), 0, -1)
    allowed = (m for m in (*few, *range(MAX_MICRO_BATCHES + 1, whole)) if not sizes.refusal(layout.pp, layout.vp, m))
    return next(allowed, whole)


def piece_seconds(job: TrainingJob, layout: TrainingLayout, schedule: Schedule) -> PieceSeconds:
    """F, B and W of every rank's chunks and the hand-over: layers as they fall on the chunks, ends where they stand.

    F and B carry the collectives and launches of their direction, and B the recomputation.
    """
    found = units(job, choice_of([layout]))
    pace = layer_pace(found)
    p = {name: float(getattr(pace, name)[0]) for name in type(pace).__slots__}
    again = (0.0, p["again_selective_s"], p["again_full_s"])[RECOMPUTES.index(layout.recompute)]
    forward = p["forward_s"] + sum(p[f"{n}_forward_s"] for n in ("tensor", "context", "expert", "host"))
    backward = p["input_gradient_s"] + sum(p[f"{n}_backward_s"] for n in ("tensor", "context", "expert", "host"))
    position = _positions(schedule, layout)
    groups = int(position.max()) + 1
    counts = np.array(by_chunk(found.num_layers, layout, groups // layout.pp), dtype=np.float64)
    layers = counts[position.astype(np.int64)]
    repeated = np.minimum(layers, layout.recompute_layers / position.shape[1]) if layout.recompute_layers else layers
    below, above = (end_pace(found, end) for end in (found.embedding, found.head))
    ends = [
        (position == 0) * float(b[0]) + (position == groups - 1) * float(a[0])
        for b, a in zip(below, above, strict=True)
    ]
    return PieceSeconds(
        forward_s=layers * forward + ends[0],
        backward_s=layers * backward + repeated * again + ends[1],
        weight_s=layers * p["weight_gradient_s"] + ends[2],
        hand_over_s=_hand_over_s(job, layout),
    )


def _positions(schedule: Schedule, layout: TrainingLayout) -> Floats:
    """Where in the model each chunk of each rank stands; shape (ranks, chunks)."""
    rank, chunk = np.indices((layout.pp, schedule.num_chunks(layout.vp)))
    is_turned = (schedule.placement != "loop") & (chunk % 2 == 1)
    place = np.where(is_turned, layout.pp - 1 - rank, rank)
    return (place if schedule.placement == "mirrored" else chunk * layout.pp + place).astype(np.float64)


def _hand_over_s(job: TrainingJob, layout: TrainingLayout) -> float:
    """One micro-batch's activations to the next rank."""
    ways = layout.cp * (layout.tp if layout.is_sequence_parallel else 1)
    message = ELEMENT_BYTES * layout.micro_batch * job.seq_len * job.model.hidden_size / ways
    stride = layout.tp * layout.cp * layout.dp
    curve = curves_of(job, "send_recv", ((2, stride),))
    f, is_near = job.framework, stride < job.cluster.devices_per_node
    alone_s = float(curve.time_s(np.zeros(1, dtype=np.int64), np.array([message]))[0])
    return (f.network_ratio if is_near else f.scaleout_ratio) * alone_s
