"""Answers as a person reads them in a terminal."""

from rich.console import Console
from rich.text import Text

from orrery.base.cost import Interval
from orrery.base.units import figures, percent, text
from orrery.cli.bars import legend, memory_bar
from orrery.cli.output import console
from orrery.cli.scatter import draw_front
from orrery.cli.sheet import Sheet
from orrery.planner.goal import Goal
from orrery.planner.plan import Plan, Rejected
from orrery.planner.rejection_reasons import described
from orrery.reports.words import BOUND_BY
from orrery.scenario.ask import Answer
from orrery.scenario.plan_answer import PlanAnswer, nearest_misses, shortfall
from orrery.scenario.sustained import Sustained

MEMORY_SHOWN = 5
"""Plans whose memory is drawn."""

REJECTED_SHOWN = 6
"""Rejected plans on the page, the nearest misses first; ``--json`` has them all."""


def print_estimate(answer: Answer) -> None:
    """One configuration: numbers with their intervals, memory, and what limits it."""
    out, e, d = console(), answer.estimate, answer.question.deployment
    f = d.formats
    out.print(
        f"[bold]{d.model.name}[/] on {e.num_devices} x {d.cluster.device.name} ({d.layout}), "
        f"weights {f.weights}, activations {f.activations}, cache {f.kv}, {d.engine.name}"
    )
    table = Sheet("", "mean", "80 % interval")
    for label, name, unit in (
        ("time to first token", "ttft_s", "s"),
        ("time per output token", "tpot_s", "s"),
        ("end-to-end latency", "latency_s", "s"),
        ("output rate", "output_tokens_per_s", "tokens"),
        ("total rate", "total_tokens_per_s", "tokens"),
        ("requests", "requests_per_s", ""),
        ("power", "power_w", "w"),
    ):
        value: float = getattr(e, name)
        table.add_row(label, _describe(value, name, unit), _interval(e.intervals.get(name), name, unit))
    table.add_row("energy per output token", text(e.energy_j_per_token, "j"), "")
    if (usd := answer.usd_per_million_tokens) is not None:
        table.add_row("a million output tokens", f"${figures(usd)}", "")
    out.print(table)
    out.print(f"Limited by {BOUND_BY.get(e.bound_by, e.bound_by)}; {figures(e.concurrency)} requests run at once.")
    requested = answer.question.workload
    out.print(answer.room.describe(requested.input_tokens, requested.output_tokens))
    out.print(memory_bar(e.memory, out.width))
    out.print(f"({legend()})")
    if answer.sustained:
        _print_sustained(out, answer.sustained)


def _print_sustained(out: Console, found: Sustained) -> None:
    """Cold and warm beside each other, the mean, and the battery."""
    sheet = Sheet(
        "", "clock", "output rate", "TPOT", "power", title=f"{text(found.length_s, 's')} of use without a pause"
    )
    for name, one in (("cold", found.cold), ("warm", found.warm)):
        rate = f"{text(one.output_tokens_per_s, 'tokens')}/s"
        clock = percent(one.clock_frac) + (f", busy {percent(one.busy_frac)}" if one.busy_frac < 1.0 else "")
        sheet.add_row(name, clock, rate, text(one.tpot_s, "s"), text(one.power_w, "w"))
    out.print(sheet)
    throttles = "It does not throttle"
    if found.throttles_after_s is not None:
        throttles = f"It throttles after {text(found.throttles_after_s, 's')}"
    out.print(f"{throttles}; {figures(found.output_tokens_per_s)} tokens/s on average.")
    if found.battery_s is not None and found.battery_tokens is not None:
        out.print(f"The battery lasts {text(found.battery_s, 's')}: {figures(found.battery_tokens)} output tokens.")


def print_plans(answer: PlanAnswer, is_every: bool = False) -> None:
    """The best plan of each device (``is_every``: all), the front, memory, the rejected, and a launch of the first."""
    out = console()
    _headline(out, answer)
    shown = shown_plans(answer, is_every)
    if answer.plans:
        out.print(_plan_table(shown))
        _print_below(out, answer, len(shown))
        out.print(f"Memory ({legend()})")
        for rank, plan in shown[:MEMORY_SHOWN]:
            out.print(Text(f"{rank:>2} ").append_text(memory_bar(plan.operation.memory, out.width - 4)))
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


def shown_plans(answer: PlanAnswer, is_every: bool) -> tuple[tuple[int, Plan], ...]:
    """Rows of the table, with their ranks: of several devices the best of each, of one its best few."""
    one_each = answer.best_by_device
    return answer.ranked if is_every or len(answer.tariffs) < 2 else tuple(one_each.values())


def _print_below(out: Console, answer: PlanAnswer, num_shown: int) -> None:
    """Print what the rows leave out: devices without a plan, further plans, and how far the first is from its limit."""
    for device, near in answer.rejected_by_device.items():
        out.print(f"{device}: no plan works; the nearest: {shortfall(near)}", markup=False)
    best = answer.plans[0]
    if (headroom := answer.headroom_frac(best)) is not None:
        highest, rate = best.operation.highest_requests_per_s, answer.goal.traffic.request_rate_per_s
        out.print(
            f"Headroom of plan 1: it sustains {figures(highest)} requests/s, {percent(headroom)} above the "
            f"{figures(rate)} that arrive."
        )
    if num_shown < answer.num_plans:
        rest = answer.num_plans - num_shown
        out.print(f"{rest} further plan{'s' * (rest > 1)}: --all-plans", markup=False)


def _headline(out: Console, answer: PlanAnswer) -> None:
    works = f"{answer.num_plans} of {answer.num_plans + len(answer.rejected)} plans work"
    cost = f"{answer.evaluated:,} operating points in {answer.seconds:.2f} s"
    if answer.infeasible:
        out.print(f"[bold red]Infeasible.[/] {answer.infeasible}", highlight=False)
        out.print(f"({cost})")
        return
    order = "the best of each device" if len(answer.tariffs) > 1 else "best first"
    out.print(f"[bold]{answer.plans[0].operation.deployment.model.name}[/]: {works} ({cost}); {order}")
    out.print(f"for {_requested(answer.goal)}", highlight=False)


RANKED_BY = {
    "cost": "dollars an hour",
    "throughput": "output tokens/s/device",
    "latency": "end-to-end latency",
    "energy": "joules an output token, machines included",
}
"""Figures that plans are ranked by, of each objective."""


def _requested(goal: Goal) -> str:
    """The goal as text."""
    t = goal.traffic
    rate = (
        f"{figures(t.request_rate_per_s)} requests/s" if t.request_rate_per_s else "as many requests as can be served"
    )
    limits = "".join(
        f", {name.removesuffix('_s')} up to {text(limit, 's')}" for name, limit in goal.objectives.limits()
    )
    best = RANKED_BY["throughput" if goal.best == "cost" and not t.request_rate_per_s else goal.best]
    lengths = f"{t.input_tokens:,.0f} + {t.output_tokens:,.0f} tokens"
    return f"{rate} of {lengths}{limits}, on at most {goal.max_devices} devices; ranked by {best}"


COLUMNS = (
    ("", 0),
    ("plan", 0),
    ("devices", 0),
    ("TTFT", 0),
    ("TPOT", 0),
    ("$/M out", 0),
    ("tok/s", 1),
    ("$/h", 2),
    ("up to", 3),
    ("bound by", 4),
    ("in flight", 5),
    ("tok/s/device", 6),
    ("tok/s/user", 7),
    ("J/tok", 8),
    ("$/M all", 9),
)
"""Columns of the table of plans, with how soon each leaves the line of a narrow terminal: devices, mean latencies,
dollars for a million output tokens, output tokens/s, dollars an hour, the highest rate within the objectives, what
limits it, requests in flight, output tokens/s of each device and user, energy, and dollars for a million tokens of
both kinds."""


def _plan_table(plans: tuple[tuple[int, Plan], ...]) -> Sheet:
    table = Sheet()
    for column, minor in COLUMNS:
        is_words = column in ("plan", "bound by")
        table.add_column(column, justify="left" if is_words else "right", minor=minor)
    for rank, plan in plans:
        o = plan.operation
        times = f"{o.replicas} x " if o.replicas > 1 else ""
        table.add_row(
            str(rank),
            f"{times}{described(o.candidate)}",
            str(o.num_devices),
            text(o.ttft_s, "s"),
            text(o.tpot_s, "s"),
            _usd(plan.usd_per_million_tokens),
            f"{plan.output_tokens_per_s:,.0f}",
            _usd(plan.usd_per_hour),
            f"{figures(o.highest_requests_per_s)}/s",
            plan.bound_by,
            figures(o.concurrency * o.replicas),
            f"{plan.output_tokens_per_s_per_device:,.0f}",
            f"{plan.output_tokens_per_s_per_user:,.0f}",
            figures(plan.energy_j_per_token),
            _usd(plan.usd_per_million_total_tokens),
        )
    return table


def _print_rejected(out: Console, rejected: tuple[Rejected, ...]) -> None:
    if not rejected:
        return
    out.print(f"\n[bold]Rejected[/] ({len(rejected)}; the closest are shown)")
    for item in nearest_misses(rejected, REJECTED_SHOWN):
        out.print(f"  {shortfall(item)}", markup=False)


def _print_launch(out: Console, plan: Plan) -> None:
    out.print("\n[bold]Launch the first plan[/]")
    for engine, command in plan.launch.items():
        out.print(f"[bold]# {engine}[/]")
        out.print(command, markup=False, soft_wrap=True)
    for note in plan.launch_notes:
        out.print(f"# {note}", markup=False)


def _describe(value: float, name: str, unit: str) -> str:
    if unit in ("tokens", ""):
        return f"{figures(value, 4)}{' tokens/s' if unit else '/s'}"
    return text(value, unit)


def _interval(interval: Interval | None, name: str, unit: str) -> str:
    if interval is None:
        return ""
    low, high = _describe(interval.low_80, name, unit), _describe(interval.high_80, name, unit)
    number, _, sign = low.rpartition(" ")
    return f"{number if number and high.endswith(f' {sign}') else low} to {high}"


def _usd(value: float | None) -> str:
    return "?" if value is None else figures(value)
