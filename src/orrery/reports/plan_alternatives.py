"""Beside the plan: the next-best ones and what they lose by, why not fewer devices, and what came to nothing."""

from collections import Counter

from orrery.planner.goal import Goal
from orrery.planner.plan import Plan, Rejected
from orrery.planner.rejection_reasons import described as candidate_said
from orrery.reports.report import Section, Table
from orrery.reports.serving_pictures import front_figure
from orrery.reports.words import changed, counted, format_value, listed
from orrery.scenario.plan_answer import PlanAnswer, nearest_misses, shortfall

MISSES_SHOWN = 6

WHY = {
    "memory": "do not fit into memory",
    "length": "have no room for the longest request",
    "objective": "miss an objective even with one request at a time",
    "devices": "need more devices than allowed",
    "range": "lie outside what the model knows",
}
"""Reasons why candidates were rejected, as text."""


def alternatives(answer: PlanAnswer) -> Section:
    """The next-best plans and what they lose by, why not fewer devices, and what came to nothing."""
    best = answer.plans[0]
    rows = tuple(_row(i, p, best, answer.goal) for i, p in enumerate(answer.plans, 1))
    table = Table(
        title=f"The best {len(rows)} of {answer.num_plans:,} plans that work",
        num_words=2,
        chosen=0,
        columns=(
            "",
            "plan",
            "devices",
            "TTFT",
            "TPOT",
            "max request rate",
            "$/hour",
            "$ per M tokens",
            "against the first",
        ),
        rows=rows,
    )
    figure = front_figure(answer.front, _place(best))
    return Section(
        heading="Alternatives",
        summary=(_fewer(answer), counts(answer)),
        tables=(table,),
        figures=(figure,) if figure else (),
        listed=misses(answer),
    )


def _place(plan: Plan) -> tuple[float, float] | None:
    user = plan.output_tokens_per_s_per_user
    return (user, plan.output_tokens_per_s_per_device) if user else None


def _row(number: int, plan: Plan, best: Plan, goal: Goal) -> tuple[str, ...]:
    o = plan.operation
    times = f"{o.replicas} x " if o.replicas > 1 else ""
    return (
        str(number),
        f"{times}{candidate_said(o.candidate)}",
        str(o.num_devices),
        format_value(o.ttft_s, "s"),
        format_value(o.tpot_s, "s"),
        f"{o.highest_requests_per_s:.3g}/s",
        format_value(plan.usd_per_hour, "usd"),
        format_value(plan.usd_per_million_tokens, "usd"),
        _loses(plan, best),
    )


def _loses(plan: Plan, best: Plan) -> str:
    """Why a plan stands below the first."""
    if plan is best:
        return "the answer"
    ours, theirs = plan.usd_per_hour, best.usd_per_hour
    if ours is not None and theirs and abs(ours / theirs - 1.0) > 1e-3:
        return f"costs {changed(ours, theirs)}"
    if plan.operation.num_devices != best.operation.num_devices:
        return f"{counted(plan.operation.num_devices - best.operation.num_devices, 'more device')}"
    return f"carries {changed(plan.operation.highest_requests_per_s, best.operation.highest_requests_per_s)}"


def _fewer(answer: PlanAnswer) -> str:
    """Why the answer does not take fewer devices."""
    o = answer.plans[0].operation
    if o.num_devices == 1:
        return "Minimum devices: 1 device is the minimum."
    other = next((p.operation for p in answer.plans if p.operation.num_devices < o.num_devices), None)
    if other is not None:
        where = other.deployment.cluster.device.name
        return f"Fewer devices are enough ({other.num_devices:,} x {where}), at the cost in the table."
    short = [r for r in answer.rejected if _needed(r) < o.num_devices]
    if o.replicas > 1:
        each = o.highest_requests_per_s / o.replicas
        less = o.replicas - 1
        return (
            f"Minimum devices: {counted(less, 'replica')} of the same serve{'s' if less == 1 else ''} "
            f"{format_value(less * each, 'requests_per_s')}, less than the arrival rate."
        )
    if not short:
        return "Minimum devices: no configuration with fewer devices costs less."
    nearest = min(short, key=lambda r: r.excess_ratio)
    return f"Minimum devices: the closest rejected configuration with fewer is {shortfall(nearest)}"


def _needed(rejected: Rejected) -> float:
    """Devices of a rejected plan: of one replica, or as many as it was short of."""
    return (
        rejected.infeasible.need
        if rejected.reason == "devices"
        else float(rejected.candidate.deployment.layout.num_devices)
    )


def counts(answer: PlanAnswer) -> str:
    """How many were tried, and what became of them."""
    by = Counter(r.reason for r in answer.rejected)
    parts = [f"{count:,} {WHY[reason]}" for reason, count in by.most_common()]
    lost = f"; of the others {listed(parts)}" if parts else ""
    tried = answer.num_plans + len(answer.rejected)
    return (
        f"{tried:,} configurations were evaluated (device, layout, formats), {answer.num_plans:,} of them work{lost}."
    )


def misses(answer: PlanAnswer) -> tuple[str, ...]:
    """Describe the nearest misses among the rejected candidates."""
    return tuple(shortfall(r) for r in nearest_misses(answer.rejected, MISSES_SHOWN))
