"""``orrery train --rl``: one step of RL post-training, or with ``--plan`` the best splits, in a terminal."""

from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from orrery.base.units import figures, percent, text
from orrery.cli.output import console, print_infeasible, print_json, print_notes

if TYPE_CHECKING:
    from orrery.scenario.rl import RlAnswer
    from orrery.scenario.rl_placement import RlPlacementAnswer
    from orrery.scenario.rl_plan import RlPlanAnswer
    from orrery.scenario.schema import Scenario

BAR = 30


def answer_rl(scenario: "Scenario", *, is_plan: bool, is_json: bool) -> int:
    """Ask, print, and return the exit code."""
    if scenario.rl_placement is not None and not is_plan:
        return _placement(scenario, is_json)
    return _plan(scenario, is_json) if is_plan else _one(scenario, is_json)


def _one(scenario: "Scenario", is_json: bool) -> int:
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.rl import train_rl

    answer = train_rl(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_rl(answer)
    print_notes(answer.notes)
    return 0


def _placement(scenario: "Scenario", is_json: bool) -> int:
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.rl_placement import train_rl_placement

    answer = train_rl_placement(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_placement(answer)
    print_notes(answer.notes)
    return 0


def _plan(scenario: "Scenario", is_json: bool) -> int:
    from orrery.cli.progress import bar
    from orrery.scenario.rl_plan import train_rl_plan

    with bar("splits of the devices") as report:
        answer = train_rl_plan(scenario, progress=report)
    if is_json:
        print_json(answer.to_json())
    else:
        print_rl_plan(answer)
    print_notes(answer.notes)
    return 3 if not answer.plans else 0


def print_rl(answer: "RlAnswer") -> None:
    """Figures with intervals, phases, and both pools."""
    out, job, step = console(), answer.job, answer.step
    where = "colocated" if job.is_colocated else f"{job.training.cluster.num_devices} train, "
    where += "" if job.is_colocated else f"{job.generation_devices} generate"
    out.print(
        f"[bold]{job.training.model.name}[/] on {job.num_devices} x {job.training.cluster.device.name} ({where}), "
        f"{job.algorithm}, {job.framework.name}, {job.num_prompts} prompts x {job.group} responses a step"
    )
    out.print(_figures(answer))
    _print_phases(out, answer)
    limit = "its rollouts" if step.limited_by == "generation" else step.limited_by
    out.print(f"Limited by {limit}.")
    found = step.rollouts
    out.print(
        f"Rollouts: {text(found.time_s, 's')}, of which {text(found.tail_s, 's')} after nine tenths of the sequences "
        f"had ended; {found.preemptions} preemptions."
    )
    out.print(_pools(answer))


def print_placement(answer: "RlPlacementAnswer") -> None:
    """Figures, every call with its mesh and times, and all placements beside each other."""
    from orrery.cli.tables import print_facts

    out, job = console(), answer.job
    out.print(
        f"[bold]{job.models['actor'].name}[/] on {job.cluster.num_devices} x {job.cluster.device.name}, "
        f"{answer.algorithm}, {answer.placement} placement, {job.batch} responses a step"
    )
    cost = "" if (usd := answer.usd_per_step) is None else f", ${usd:.3g}"
    out.print(
        f"Step time {text(answer.step_time_s, 's')}, of which weights move for {text(answer.moved_s, 's')}; "
        f"{figures(answer.tokens_per_s / job.cluster.num_devices)} tokens/s/device; peak memory "
        f"{text(answer.plan.memory_bytes, 'bytes')} of {text(answer.plan.capacity_bytes, 'bytes')}{cost}."
    )
    for table in answer.tables:
        print_facts(table)


def _figures(answer: "RlAnswer") -> Table:
    table, intervals = Table(box=SIMPLE, pad_edge=False), answer.intervals()
    for column in ("", "mean", "80 % interval"):
        table.add_column(column, justify="left" if not column else "right")
    step = intervals["step_time_s"]
    table.add_row("Step time", text(answer.step_time_s, "s"), f"{text(step.low_80, 's')} to {text(step.high_80, 's')}")
    for label, name in (("Samples/s", "samples_per_s"), ("Tokens/s", "tokens_per_s")):
        ends = intervals[name]
        table.add_row(label, figures(getattr(answer, name)), f"{figures(ends.low_80)} to {figures(ends.high_80)}")
    table.add_row("Tokens/s/device", figures(answer.tokens_per_s / answer.job.num_devices), "")
    table.add_row("Energy per step", text(answer.step.energy_j, "j"), "")
    if (usd := answer.usd_per_step) is not None:
        table.add_row("Cost per step", f"${usd:.3g}", "")
    return table


def _print_phases(out: Console, answer: "RlAnswer") -> None:
    table = Table(box=SIMPLE, pad_edge=False, title="Where the step goes", title_justify="left")
    for column in ("Phase", "Time", "Share", ""):
        table.add_column(column, justify="right" if column in ("Time", "Share") else "left")
    for name, seconds in answer.step.phases.items():
        share = seconds / answer.step_time_s
        table.add_row(name, text(seconds, "s"), percent(share, 1), "█" * round(BAR * share))
    out.print(table)


def _pools(answer: "RlAnswer") -> Table:
    step, job = answer.step, answer.job
    table = Table(box=SIMPLE, pad_edge=False)
    for column in ("Pool", "Devices", "Layout", "Idle", "Peak memory", "Room"):
        table.add_column(column, justify="left" if column in ("Pool", "Layout") else "right")
    engines = f"{job.replicas} x {job.generation.layout}"
    for name, devices, layout, idle_s, memory in (
        ("training", job.training.cluster.num_devices, str(job.layout), step.training_idle_s, step.trainer),
        ("generation", job.generation_devices, engines, step.generation_idle_s, step.generator),
    ):
        table.add_row(
            name,
            str(devices),
            layout,
            percent(idle_s / step.time_s),
            text(memory.peak_bytes, "bytes"),
            text(memory.room_bytes, "bytes"),
        )
    return table


def print_rl_plan(answer: "RlPlanAnswer") -> None:
    """The splits, the fastest first."""
    out, table = console(), Table(box=SIMPLE, pad_edge=False)
    for column in (
        "",
        "Train",
        "Generate",
        "Trainer",
        "Engine",
        "Step time",
        "Tokens/s/device",
        "Limited by",
        "$/step",
    ):
        table.add_column(column, justify="left" if column in ("Trainer", "Engine", "Limited by") else "right")
    for number, plan in enumerate(answer.plans, 1):
        job = plan.job
        usd = plan.usd_per_step
        table.add_row(
            str(number),
            str(job.training.cluster.num_devices),
            "same" if job.is_colocated else str(job.generation_devices),
            str(job.layout),
            str(job.generation.layout),
            text(plan.step_time_s, "s"),
            figures(plan.tokens_per_s / job.num_devices),
            plan.step.limited_by,
            f"{usd:.3g}" if usd is not None else "",
        )
    out.print(table)
    out.print(f"{answer.evaluated} splits and layouts simulated in {answer.search_s:.1f} s.")
    for what, count in answer.rejected.items():
        out.print(f"Left out: {count} x {what}")
