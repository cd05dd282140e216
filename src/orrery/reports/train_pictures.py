"""Where a training step's time and memory go, drawn."""

from collections.abc import Mapping, Sequence

from orrery.base.errors import ScenarioError
from orrery.drawing import Axis, Bar, Part, Point, Span, Track, scatter, stacked, timeline
from orrery.execution.train.job import TrainingJob
from orrery.planner.training.search import Point as Layouted
from orrery.reports.report import Figure
from orrery.reports.words import format_value
from orrery.scenario.train import TrainAnswer
from orrery.scenario.train_offload import OffloadAnswer
from orrery.scenario.train_run import Run
from orrery.scenario.train_timeline import played_step

RANKS_SHOWN = 6
MAX_RANKS, MAX_FRONT = 16, 150
PIECES = {"F": "forward", "B": "backward", "BW": "backward", "W": "weight gradients"}


def step_figure(steps: Sequence[tuple[str, Mapping[str, float]]]) -> Figure:
    """Parts of a step, that of the answer first."""
    order = sorted(steps[0][1], key=lambda name: -steps[0][1][name])
    bars = [Bar(name, [Part(part, parts.get(part, 0.0)) for part in order]) for name, parts in steps]
    whole, longest = sum(steps[0][1].values()), order[0]
    summary = (
        f"Of a step of {format_value(whole, 's')}, {longest} takes "
        f"{format_value(steps[0][1][longest] / whole, 'frac')}."
    )
    waste = steps[0][1].get("bubble", 0.0)
    summary += f" The pipeline's bubble takes {format_value(waste / whole, 'frac')}." if waste else ""
    title = "Time of one step"
    return Figure(title=title, summary=summary, svg=stacked(bars, Axis("", "s"), title=title))


def memory_figure(answer: TrainAnswer) -> Figure:
    """Memory of the pipeline ranks by category, against the device."""
    ranks, title = answer.ranks, "Memory of a device, by pipeline rank"
    if len(ranks) > RANKS_SHOWN:
        ranks = (*ranks[: RANKS_SHOWN - 1], ranks[-1])
    capacity = answer.job.cluster.device.memory_capacity_bytes
    bars = [
        Bar(
            f"rank {r.rank}",
            [Part(name, size) for name, size in r.parts.items()],
            mark=capacity if r is ranks[0] else None,
            mark_name="capacity",
        )
        for r in ranks
    ]
    summary = (
        f"The fullest takes {format_value(answer.peak_memory_bytes, 'bytes')} of {format_value(capacity, 'bytes')}."
    )
    return Figure(title=title, summary=summary, svg=stacked(bars, Axis("", "bytes"), title=title))


def run_figure(run: Run) -> Figure | None:
    """The whole run by what it is spent on; None where it is all steps."""
    parts = [Part(name, seconds / 86400.0) for name, seconds in run.parts.items() if seconds > 0]
    if len(parts) < 2:
        return None
    title = "Days of the whole run"
    summary = f"{run.num_steps:,} steps in {format_value(run.days, 'day')}."
    if g := run.goodput:
        summary += (
            f" {g.num_failures:.3g} failures are expected; checkpoints take {format_value(g.checkpoint_frac, 'frac')}, "
            f"lost work {format_value(g.lost_frac, 'frac')}, recovery {format_value(g.recovery_frac, 'frac')}."
        )
    return Figure(title=title, summary=summary, svg=stacked([Bar("the run", parts)], Axis("days"), title=title))


def pipeline_figure(answer: TrainAnswer) -> Figure | None:
    """One step of the pipeline, rank by rank; None without a pipeline."""
    try:
        played = played_step(answer.job, answer.layout)
    except ScenarioError:
        return None
    tracks = [
        Track(
            f"rank {number}", [Span(p.start_s, p.end_s, "+".join(PIECES[one.kind] for one in p.pieces)) for p in rank]
        )
        for number, rank in enumerate(played.timeline.ranks[:MAX_RANKS])
    ]
    ranks = len(played.timeline.ranks)
    some = f", {MAX_RANKS} of {ranks} ranks" if ranks > MAX_RANKS else ""
    title = "One step of the pipeline"
    summary = (
        f"{played.num_micro_batches:,} micro-batches are drawn{some}; gaps are the bubble, in which a rank waits "
        "for others."
    )
    return Figure(title=title, summary=summary, svg=timeline(tracks, title=title))


def tiers_figure(answer: OffloadAnswer) -> Figure:
    """Work of each lane in a step, hidden or not."""
    bars = [Bar(name, [Part("busy", seconds)]) for name, seconds in answer.lanes.items() if seconds > 0]
    title = "Time that each lane works in a step"
    summary = f"A step takes {format_value(answer.step_time_s, 's')}; lanes that work longest leave least to hide."
    return Figure(title=title, summary=summary, svg=stacked(bars, Axis("", "s"), title=title))


def front_figure(points: Sequence[Layouted], job: TrainingJob) -> Figure | None:
    """Layouts of which none is as fast, as small and as frugal."""
    if len(points) < 2:
        return None
    step = max(1, len(points) // MAX_FRONT)
    fastest = min(points, key=lambda p: p.time_s)
    drawn = [
        Point(
            p.time_s,
            p.memory_bytes,
            str(p.layout),
            detail=f"{format_value(p.energy_j, 'j')} a step",
            kind="the fastest" if p is fastest else "other layouts",
        )
        for p in {id(p): p for p in (fastest, *points[::step])}.values()
    ]
    title = "Time of a step against memory of a device"
    summary = (
        f"Every point is a layout that no other beats in time, memory and energy at once; "
        f"{format_value(job.cluster.device.memory_capacity_bytes, 'bytes')} is the device's capacity."
    )
    svg = scatter(drawn, Axis("time of a step", "s", is_log=True), Axis("peak memory", "bytes"), title=title)
    return Figure(title=title, summary=summary, svg=svg)
