"""Training answers as a person reads them in a terminal."""

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from orrery.base.cost import Interval
from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.cli.tables import print_facts
from orrery.reports.words import BOUND_BY
from orrery.scenario.train import KINDS, TrainAnswer
from orrery.scenario.train_against import Against
from orrery.scenario.train_offload import OffloadAnswer
from orrery.scenario.train_plan import TrainPlanAnswer
from orrery.scenario.train_run import Run
from orrery.training.ranks import Rank

CATEGORIES = (
    ("W", "weights", "blue"),
    ("G", "gradients", "cyan"),
    ("O", "optimizer", "green"),
    ("A", "activations", "yellow"),
    ("L", "logits", "magenta"),
    ("B", "buffers", "red"),
    ("F", "fragmentation", "white"),
    ("U", "update", "bright_green"),
    ("X", "fixed", "bright_black"),
)
"""Letter, category, colour."""

RANKS_SHOWN = 4
WIDEST_BAR, MIN_BAR = 48, 10
PART_BAR = 30


def print_train(answer: TrainAnswer) -> None:
    """One configuration: numbers with intervals, where the step goes, memory of the ranks, and the whole run."""
    out, job = console(), answer.job
    out.print(
        f"[bold]{job.model.name}[/] on {job.cluster.num_devices} x {job.cluster.device.name} ({answer.layout}), "
        f"{job.recipe.name}, {job.framework.name}, {job.global_batch} x {job.seq_len} tokens a step"
    )
    out.print(_figures(answer))
    out.print(parts_table(answer.parts, answer.step_time_s, "Where the step goes"))
    out.print(f"Limited by {BOUND_BY[answer.bound_by]}.")
    _print_memory(out, answer)
    for table in answer.tables:
        print_facts(table)
    if answer.run:
        print_run(out, answer.run)


def _figures(answer: TrainAnswer) -> Sheet:
    table, intervals = Sheet("", "mean", "80 % interval"), answer.intervals()
    for label, name, unit in (
        ("step", "step_time_s", "s"),
        ("tokens/s per device", "tokens_per_s_per_device", ""),
        ("model FLOPs utilization (MFU)", "mfu_frac", "%"),
        ("peak memory", "peak_memory_bytes", "bytes"),
    ):
        value: float = getattr(answer, name)
        table.add_row(label, _describe(value, unit), _interval(intervals.get(name), unit))
    table.add_row("power of a device", text(answer.power_w, "w"), "")
    table.add_row("energy per token", text(answer.energy_j_per_token, "j"), "")
    if (usd := answer.usd_per_million_tokens) is not None:
        table.add_row("a million tokens", f"${figures(usd)}", "")
    return table


def _describe(value: float, unit: str) -> str:
    if unit == "%":
        return percent(value, 1)
    return text(value, unit) if unit else f"{value:,.0f}"


def _interval(interval: Interval | None, unit: str) -> str:
    return f"{_describe(interval.low_80, unit)} to {_describe(interval.high_80, unit)}" if interval else ""


def parts_table(parts: Mapping[str, float], whole_s: float, title: str) -> Sheet:
    """Where some seconds go, the biggest first."""
    table = Sheet("part", "time", "share", title=title)
    table.add_column("", justify="left", minor=1)
    for name, seconds in sorted(parts.items(), key=lambda item: -item[1]):
        if seconds > 0:
            share = seconds / whole_s
            table.add_row(name, _long(seconds, whole_s), percent(share, 1), "█" * round(PART_BAR * share))
    return table


DAY_S, HOUR_S = 86400.0, 3600.0


def _long(seconds: float, whole_s: float) -> str:
    """Seconds of a whole that may be days: then in hours."""
    return text(seconds, "s") if whole_s < DAY_S else f"{figures(seconds / HOUR_S)} h"


def _print_memory(out: Console, answer: TrainAnswer) -> None:
    legend = ", ".join(f"{letter} {name}" for letter, name, _ in CATEGORIES)
    out.print(f"Memory by pipeline rank, GB ({legend}, · free)")
    shown = answer.ranks
    if len(shown) > RANKS_SHOWN:
        shown = (*shown[: RANKS_SHOWN - 1], shown[-1])
    capacity = answer.job.cluster.device.memory_capacity_bytes
    message = [_rank_figures(rank, capacity) for rank in shown]
    width = max(MIN_BAR, min(WIDEST_BAR, out.width - max(text.cell_len for text in message) - len("   0 []")))
    for rank, text_of_rank in zip(shown, message, strict=True):
        out.print(Text(f"{rank.rank:>4} ").append_text(_bar(rank, capacity, width)).append_text(text_of_rank))


def _rank_figures(rank: Rank, capacity_bytes: float) -> Text:
    """Memory of the rank by category, and its total."""
    text = Text()
    for letter, name, colour in CATEGORIES:
        if (size := rank.parts[name]) > 0.005 * capacity_bytes:
            text.append(f" {letter} ").append(f"{size / 1e9:.3g}", style=colour)
    return text.append(f" = {rank.peak_bytes / 1e9:.3g} of {capacity_bytes / 1e9:.3g}")


def _bar(rank: Rank, capacity_bytes: float, width: int) -> Text:
    bar, used = Text("["), 0
    for letter, name, colour in CATEGORIES:
        cells = min(round(rank.parts[name] / capacity_bytes * width), width - used)
        used += cells
        bar.append(letter * cells, style=colour)
    return bar.append("·" * (width - used) + "]")


def print_run(out: Console, run: Run) -> None:
    """How long the whole run takes, and of what; and what failures cost it."""
    usd = f", ${run.usd:,.0f}" if run.usd is not None else ""
    out.print(
        f"{figures(run.tokens)} tokens: {run.num_steps:,} steps, {run.days:,.1f} days, "
        f"{run.device_hours:,.0f} device hours, {text(run.energy_j, 'j')}{usd}."
    )
    if sum(seconds > 0 for seconds in run.parts.values()) > 1:
        evaluated = f", with {run.num_evaluations:,} evaluations" if run.num_evaluations else ""
        out.print(parts_table(run.parts, run.time_s, f"Where the run goes{evaluated}"))
    if run.goodput:
        g = run.goodput
        out.print(
            f"No checkpoints; {g.num_failures:.1f} failures."
            if run.checkpoint == "none"
            else f"{run.checkpoint} checkpoints of {text(run.checkpoint_bytes, 'bytes')} every "
            f"{text(run.checkpoint_interval_s, 's')}, {text(run.checkpoint_blocked_s, 's')} blocked each; "
            f"{g.num_failures:.1f} failures."
        )
        out.print(
            f"Goodput {percent(g.useful_frac, 1)}: checkpoints take {percent(g.checkpoint_frac, 1)}, lost work "
            f"{percent(g.lost_frac, 1)}, recovery {percent(g.recovery_frac, 1)}."
        )


def print_train_plan(answer: TrainPlanAnswer) -> None:
    """The fastest layouts, the front of time and memory, what falls out, and how to launch the winner."""
    out, job = console(), answer.job
    out.print(
        f"[bold]{job.model.name}[/] on {job.cluster.num_devices} x {job.cluster.device.name}, {job.recipe.name}, "
        f"{job.framework.name}: {answer.num_layouts:,} layouts, {answer.evaluated:,} evaluated and "
        f"{answer.ruled_out:,} ruled out by bounds in {answer.seconds:.1f} s"
    )
    if answer.infeasible:
        out.print(f"Infeasible: {answer.infeasible}", markup=False)
    if answer.plans:
        out.print(_plan_table(answer))
        out.print(f"One in full: the same command with --layout '{answer.plans[0].layout}' in place of --plan.")
        out.print(_front_table(answer))
    if answer.offloads:
        out.print(_offload_table(answer.offloads))
    if answer.against:
        _print_against(out, answer.against, answer)
    _print_why_not(out, answer)
    if answer.launch:
        out.print(f"Launch with ({', '.join(answer.launch)}; all of them with --json):")
        name = job.framework.name if job.framework.name in answer.launch else next(iter(answer.launch))
        out.print(answer.launch[name], markup=False, highlight=False, soft_wrap=True)


WHOLE = ("days", "device hours", "$")
"""Columns of the whole run."""


def _plan_table(answer: TrainPlanAnswer) -> Sheet:
    table = Sheet()
    table.add_column("layout", justify="left", wraps=True)
    for column in ("step", "MFU", "tokens/s/device", "memory", "$/M tokens"):
        table.add_column(column)
    for column in ("bubble", "network"):
        table.add_column(column, minor=2)
    for column in WHOLE if any(p.run for p in answer.plans) else ():
        table.add_column(column, minor=1)
    for plan in answer.plans:
        usd = plan.usd_per_million_tokens
        network = sum(plan.parts[n] for n in KINDS["network"])
        table.add_row(
            str(plan.layout),
            text(plan.step_time_s, "s"),
            percent(plan.mfu_frac, 1),
            f"{plan.tokens_per_s_per_device:,.0f}",
            text(plan.peak_memory_bytes, "bytes"),
            "" if usd is None else figures(usd),
            percent(plan.parts["bubble"] / plan.step_time_s, 1),
            percent(network / plan.step_time_s, 1),
            *_whole(plan.run),
        )
    return table


def _offload_table(offloads: tuple[OffloadAnswer, ...]) -> Sheet:
    """The fastest with states in the host's memory or on drives."""
    table = Sheet("--offload", title="With states off the device")
    table.add_column("layout", justify="left", wraps=True)
    for column in ("step", "MFU", "device", "host", "drives"):
        table.add_column(column)
    for column in WHOLE if any(p.run for p in offloads) else ():
        table.add_column(column, minor=1)
    for p in offloads:
        held = (text(b, "bytes") if b else "" for b in (p.held.gpu_bytes, p.held.host_bytes, p.held.nvme_bytes))
        table.add_row(p.offload, str(p.layout), text(p.step_time_s, "s"), percent(p.mfu_frac, 1), *held, *_whole(p.run))
    return table


def _whole(run: Run | None) -> tuple[str, ...]:
    """Days, device hours and dollars of the run."""
    if run is None:
        return ()
    return f"{run.days:,.1f}", f"{run.device_hours:,.0f}", "" if run.usd is None else f"{run.usd:,.0f}"


LOST_SHOWN = 3


def _print_against(out: Console, mine: Against, answer: TrainPlanAnswer) -> None:
    """The user's layout: its rank, how much longer it takes and in which parts, and what the best does otherwise."""
    a = mine.answer
    out.print(
        f"Yours, {a.layout}: {text(a.step_time_s, 's')} a step, {percent(a.mfu_frac, 1)} MFU, rank {mine.rank:,} "
        f"({mine.num_faster:,} layouts that fit are faster).",
        markup=False,
    )
    if not mine.fits:
        out.print(f"It needs {text(mine.need_bytes, 'bytes')} a device and has {text(mine.have_bytes, 'bytes')}.")
    if not answer.plans or mine.rank == 1:
        return
    best = answer.plans[0]
    lost = sorted(mine.seconds_lost(best).items(), key=lambda item: -item[1])[:LOST_SHOWN]
    message = ", ".join(f"{text(seconds, 's')} {name}" for name, seconds in lost if seconds > 0.0)
    does = ", ".join(f"{name} {theirs} for {own}" for name, (own, theirs) in mine.differences(best).items())
    out.print(
        f"The best takes {text(best.step_time_s, 's')}; yours loses most in: {message}. It has {does}.", markup=False
    )


FRONT_SHOWN = 6


def _front_table(answer: TrainPlanAnswer) -> Sheet:
    """A table of layouts than which no other is as fast, as small and as frugal."""
    table = Sheet(title="Time against memory and energy")
    table.add_column("layout", justify="left", wraps=True)
    for column in ("step", "memory", "energy per step"):
        table.add_column(column)
    step = max(1, len(answer.front) // FRONT_SHOWN)
    for point in answer.front[::step][:FRONT_SHOWN]:
        table.add_row(
            str(point.layout), text(point.time_s, "s"), text(point.memory_bytes, "bytes"), text(point.energy_j, "j")
        )
    return table


def _print_why_not(out: Console, answer: TrainPlanAnswer) -> None:
    if not answer.rejected:
        return
    message = ", ".join(f"{count:,} {name}" for name, count in answer.why_not().items())
    out.print(f"Why not the others: {message}.")
    for rejected in [k for k in answer.rejected if k.nearest is not None][:3]:
        out.print(
            f"  {rejected.family}: {rejected.layouts:,} layouts need more memory; the smallest, "
            f"{rejected.nearest}, takes "
            f"{text(rejected.need_bytes, 'bytes')} of {text(rejected.have_bytes, 'bytes')}",
            markup=False,
        )
