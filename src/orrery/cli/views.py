"""Answers as a person reads them in a terminal."""

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table
from rich.text import Text

from orrery.base.cost import Interval
from orrery.base.units import text
from orrery.cli.bars import legend, memory_bar
from orrery.cli.output import console
from orrery.cli.scatter import draw_front
from orrery.planner.goal import Goal
from orrery.planner.plan import Plan, Rejected
from orrery.planner.why_not import described
from orrery.reports.serving_words import BOUND_BY
from orrery.scenario.ask import Answer
from orrery.scenario.plan_answer import PlanAnswer, lacking, nearest_misses

REJECTED_SHOWN = 6
"""Rejected plans on the page, the nearest misses first; ``--json`` has them all."""

PLAN_COLUMNS = 22
"""Least width of a plan's name."""


def print_estimate(answer: Answer) -> None:
    """One configuration: numbers with their intervals, memory, and what limits it."""
    out, e, d = console(), answer.estimate, answer.question.deployment
    f = d.formats
    out.print(f"[bold]{d.model.name}[/] on {e.num_devices} x {d.cluster.device.name} ({d.layout}), "
              f"weights {f.weights}, activations {f.activations}, cache {f.kv}, {d.engine.name}")  # fmt: skip
    table = Table(box=SIMPLE, pad_edge=False)
    for column in ("", "mean", "80 % interval"):
        table.add_column(column, justify="left" if not column else "right")
    for label, name, unit in (
        ("time to first token", "ttft_s", "s"), ("time per output token", "tpot_s", "s"),
        ("whole request", "latency_s", "s"), ("output rate", "output_tokens_per_s", "tokens"),
        ("total rate", "total_tokens_per_s", "tokens"), ("requests", "requests_per_s", ""), ("power", "power_w", "w"),
    ):  # fmt: skip
        value: float = getattr(e, name)
        table.add_row(label, _said(value, name, unit), _interval(e.intervals.get(name), name, unit))
    table.add_row("energy per output token", text(e.energy_j_per_token, "j"), "")
    if (usd := answer.usd_per_million_tokens) is not None:
        table.add_row("a million output tokens", f"${usd:.3g}", "")
    out.print(table)
    out.print(f"Limited by {BOUND_BY.get(e.bound_by, e.bound_by)}; {e.concurrency:.3g} requests run at once.")
    out.print(memory_bar(e.memory, out.width))
    out.print(f"({legend()})")


def print_plans(answer: PlanAnswer) -> None:
    """The best plans, the front, memory, the rejected, and how to launch the winner."""
    out = console()
    _headline(out, answer)
    if answer.plans:
        out.print(_plan_table(answer.plans))
        out.print(f"Memory ({legend()})")
        for index, plan in enumerate(answer.plans, 1):
            out.print(Text(f"{index:>2} ").append_text(memory_bar(plan.operation.memory, out.width - 4)))
        for _, tariff in answer.tariffs:
            for note in tariff.notes or (f"price: {tariff.because}",):
                out.print(note, markup=False)
        for note in answer.plans[0].notes:
            out.print(f"   1: {note}", markup=False)
    if answer.front:
        out.print()
        draw_front(out, answer.front, answer.plans[0].operation if answer.plans else None)
    _print_rejected(out, answer.rejected)
    if answer.plans:
        _print_launch(out, answer.plans[0])


def _headline(out: Console, answer: PlanAnswer) -> None:
    works = f"{answer.num_plans} of {answer.num_plans + len(answer.rejected)} plans work"
    cost = f"{answer.evaluated:,} operating points in {answer.seconds:.2f} s"
    if answer.infeasible:
        out.print(f"[bold red]Infeasible.[/] {answer.infeasible}", highlight=False)
        out.print(f"({cost})")
        return
    out.print(f"[bold]{answer.plans[0].operation.deployment.model.name}[/]: {works} ({cost}); best first")
    out.print(f"for {_asked(answer.goal)}", highlight=False)


def _asked(goal: Goal) -> str:
    """The goal in words."""
    t = goal.traffic
    rate = f"{t.request_rate_per_s:.3g} requests/s" if t.request_rate_per_s else "as many requests as can be served"
    limits = "".join(
        f", {name.removesuffix('_s')} up to {text(limit, 's')}" for name, limit in goal.objectives.limits()
    )
    best = "dollars an hour" if goal.best == "cost" else "output tokens/s/device"
    lengths = f"{t.input_tokens:.0f} + {t.output_tokens:.0f} tokens"
    return f"{rate} of {lengths}{limits}, on at most {goal.max_devices} devices; ranked by {best}"


COLUMNS = ("", "plan", "devices", "flight", "TTFT", "TPOT", "tok/s", "/device", "/user", "up to", "bound by", "J/tok",
           "$/h", "$/M out", "$/M all")  # fmt: skip
"""Of the table of plans: devices, requests in flight, latencies, output tokens a second (all, each device, each user),
the highest rate within the objectives, what limits it, energy, and dollars for a million output tokens and for all."""


def _plan_table(plans: tuple[Plan, ...]) -> Table:
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for column in COLUMNS:
        is_plan = column == "plan"
        table.add_column(
            column, justify="left" if is_plan or column == "bound by" else "right", no_wrap=not is_plan,
            min_width=PLAN_COLUMNS if is_plan else None,
        )  # fmt: skip
    for index, plan in enumerate(plans, 1):
        o = plan.operation
        times = f"{o.replicas} x " if o.replicas > 1 else ""
        table.add_row(
            str(index), f"{times}{described(o.candidate)}", str(o.num_devices), f"{o.concurrency * o.replicas:.3g}",
            text(o.ttft_s, "s"), text(o.tpot_s, "s"), f"{plan.output_tokens_per_s:,.0f}",
            f"{plan.output_tokens_per_s_per_device:,.0f}", f"{plan.output_tokens_per_s_per_user:,.0f}",
            f"{o.highest_requests_per_s:.3g}/s", plan.bound_by, f"{plan.energy_j_per_token:.3g}",
            _usd(plan.usd_per_hour), _usd(plan.usd_per_million_tokens), _usd(plan.usd_per_million_total_tokens),
        )  # fmt: skip
    return table


def _print_rejected(out: Console, rejected: tuple[Rejected, ...]) -> None:
    if not rejected:
        return
    out.print(f"\n[bold]Rejected[/] ({len(rejected)}; the nearest misses)")
    for item in nearest_misses(rejected, REJECTED_SHOWN):
        out.print(f"  {lacking(item)}", markup=False)


def _print_launch(out: Console, plan: Plan) -> None:
    out.print("\n[bold]Launch the first plan[/]")
    for engine, command in plan.launch.items():
        out.print(f"[bold]# {engine}[/]")
        out.print(command, markup=False, soft_wrap=True)
    for note in plan.launch_notes:
        out.print(f"# {note}", markup=False)


def _said(value: float, name: str, unit: str) -> str:
    if unit in ("tokens", ""):
        return f"{value:,.4g} {'tokens/s' if unit else '/s'}".replace(" /s", "/s")
    return text(value, unit)


def _interval(interval: Interval | None, name: str, unit: str) -> str:
    if interval is None:
        return ""
    return f"{_said(interval.low_80, name, unit)} to {_said(interval.high_80, name, unit)}"


def _usd(value: float | None) -> str:
    return "?" if value is None else f"{value:.3g}"
