"""The report of a plan: what to rent, what it costs, why not less, and what would change that."""

from dataclasses import replace

from orrery.execution.memory import Infeasible
from orrery.planner.detail import workload_of
from orrery.planner.goal import Goal
from orrery.planner.plan import Operation, Plan
from orrery.planner.rejection_reasons import described as candidate_said
from orrery.reports.facts import ONLINE, SERVING, accuracy_of, facts_of
from orrery.reports.frame import Frame, framed, infeasible, prices_of
from orrery.reports.money import Bill, money_section
from orrery.reports.plan_alternatives import alternatives, counts, misses
from orrery.reports.plan_swings import FixedPlan, capacity_interval, fleet_at, sensitivity
from orrery.reports.report import Command, Number, Report, Section
from orrery.reports.serving_pictures import memory_figure, roofline_figure, time_figure
from orrery.reports.serving_words import cut, formats_said, machines, plan_question
from orrery.reports.simulated_plan import held_against, tail_of
from orrery.reports.source import Source
from orrery.reports.swings import with_figures
from orrery.reports.words import counted, format_value, listed, sure
from orrery.scenario.ask import Answer
from orrery.scenario.plan import plan_scenario
from orrery.scenario.plan_answer import PlanAnswer
from orrery.scenario.plan_simulated import SimulatedPlans, plan_simulated
from orrery.scenario.resolve import Question, device_names
from orrery.scenario.schema import merged
from orrery.serving.estimate import estimate

MEANS_ONLY = (
    "Objectives are held against mean latencies in a steady state. Peaks and slow requests at the tail are not in "
    "it: `orrery plan --simulate` with percentiles (p99_ttft:MS) has them."
)


def plan_report(source: Source, frame: Frame) -> Report:
    """Report what was found: the answer at hand, or that of a search (seconds)."""
    held, answer = _found(source)
    devices = device_names(source.scenario)
    model = _model(answer, source)
    question = (plan_question(answer.goal, model, listed(devices, "or")),)
    if answer.infeasible or not answer.plans:
        return _none(source, frame, answer, model, question)
    best = answer.plans[0]
    fixed = FixedPlan(goal=answer.goal, plan=best)
    one = as_estimate(answer, best)
    return framed(
        source,
        frame,
        model=model,
        question=question,
        headline=headline(fixed, model),
        summary=(*describe(fixed), *(tail_of(held) if held else ())),
        money=money_section(_bill(fixed), answer.money),
        risks=_risks(fixed),
        numbers=numbers(fixed),
        alternatives=alternatives(answer),
        sensitivity=with_figures(sensitivity(fixed)),
        where=_where(answer, one, held),
        assumptions=(*answer.notes, *best.notes),
        facts=facts_of(one),
        accuracy=accuracy_of(ONLINE, SERVING),
        limits=_limits(source, fixed),
        commands=(
            *_launches(best),
            Command(about="Allow twice as many devices", line=_with_more(source, 2 * answer.goal.max_devices)),
            prices_of(source, best.operation.deployment.cluster.device.name),
        ),
    )


def _model(answer: PlanAnswer, source: Source) -> str:
    if answer.plans:
        return answer.plans[0].operation.deployment.model.name
    return answer.rejected[0].candidate.deployment.model.name if answer.rejected else source.scenario.model or ""


def _none(source: Source, frame: Frame, answer: PlanAnswer, model: str, question: tuple[str, ...]) -> Report:
    shortfall = answer.infeasible or Infeasible(what="a plan", need=1.0, have=0.0, unit="plans", smallest_change="")
    section = Section(heading="What comes closest", summary=(counts(answer),), listed=misses(answer))
    return infeasible(
        source, frame, shortfall, model=model, question=question, notes=answer.notes, alternatives=section
    )


def _found(source: Source) -> tuple[SimulatedPlans | None, PlanAnswer]:
    """The plans held against a simulation, where they are, and all of the answer."""
    given = source.answer
    if source.is_simulated:
        held = given if isinstance(given, SimulatedPlans) else plan_simulated(source.scenario)
        return held, held.answer
    return None, given if isinstance(given, PlanAnswer) else plan_scenario(source.scenario)


def as_estimate(answer: PlanAnswer, plan: Plan) -> Answer:
    """One replica of a plan as an estimate, which unfolds to facts."""
    deployment, workload = plan.operation.deployment, workload_of(answer.goal, plan.operation)
    found = estimate(deployment, workload)
    if isinstance(found, Infeasible):
        raise AssertionError(f"a plan stopped fitting: {found}")
    question = Question(deployment=deployment, workload=workload, notes=())
    return Answer(question=question, estimate=found, tariff=plan.operation.candidate.option.tariff, notes=())


def headline(fixed: FixedPlan, model: str) -> str:
    """Devices to rent, their performance and cost, with 80 % intervals."""
    plan, o = fixed.plan, fixed.operation
    d, goal = o.deployment, fixed.goal
    around = plan.intervals
    where = machines(o.num_devices, d.cluster.device.name)
    serves = f"serve{'s' if o.num_devices == 1 else ''}"
    cost = _cost(fixed)
    load = (
        format_value(goal.traffic.request_rate_per_s, "requests_per_s")
        if goal.traffic.request_rate_per_s
        else (f"{format_value(o.requests_per_s, 'requests_per_s')} (the most they can)")
    )
    times = f"a first token takes {format_value(o.ttft_s, 's')}{sure(around.get('ttft_s'), 's')}"
    if o.tpot_s > 0:
        times += f" and each output token after it {format_value(o.tpot_s, 's')}{sure(around.get('tpot_s'), 's')}"
    spare = spare_of(goal, o)
    left = (
        f"; {format_value(spare, 'frac')} of {'its' if o.num_devices == 1 else 'their'} capacity is spare"
        if goal.traffic.request_rate_per_s
        else ""
    )
    return f"{where} in {d.formats.weights.upper()} {serves} {model} at {load}{cost}: {times}, on average{left}."


def _cost(fixed: FixedPlan) -> str:
    """Dollars a million tokens, and how sure they are: the price is exact, the number of devices need not be."""
    usd = fixed.plan.usd_per_million_tokens
    if usd is None:
        return ""
    carried = capacity_interval(fixed)
    if carried is None:
        return f" for {format_value(usd, 'usd')} per million output tokens"
    top = fixed.operation.highest_requests_per_s
    ends = [fleet_at(fixed, end / top)["usd_per_million_tokens"] for end in (carried.high_80, carried.low_80)]
    low, high = (format_value(e, "usd") for e in ends)
    sure_of = "the same at either end of the 80 % interval of speed" if low == high else f"80 %: {low} to {high}"
    return f" for {format_value(usd, 'usd')} per million output tokens ({sure_of})"


def spare_of(goal: Goal, o: Operation) -> float:
    """The share of what a plan carries that does not arrive."""
    return 1.0 - goal.traffic.request_rate_per_s / o.highest_requests_per_s


def describe(fixed: FixedPlan) -> tuple[str, ...]:
    """Further sentences: the layout, the money, the margin, and the slow end."""
    o, goal = fixed.operation, fixed.goal
    d = o.deployment
    how = f"{counted(o.replicas, 'replica')}: {cut(d.layout)}, {formats_said(d.formats)}, engine {d.engine.name}."
    out = [how]
    carried = capacity_interval(fixed)
    if goal.traffic.request_rate_per_s and carried:
        rate = format_value(o.highest_requests_per_s, "requests_per_s")
        top = f"Max request rate: {rate}{sure(carried, 'requests_per_s')}"
        if carried.low_80 >= goal.traffic.request_rate_per_s:
            out.append(f"{top}: even the low end is more than what arrives.")
        else:
            more = fleet_at(fixed, carried.low_80 / o.highest_requests_per_s)["num_devices"]
            out.append(f"{top}: at the low end the same traffic needs {counted(more, 'device')}.")
    return tuple(out)


def _bill(fixed: FixedPlan) -> Bill:
    plan, o = fixed.plan, fixed.operation
    rate, lengths = fixed.goal.traffic.request_rate_per_s, fixed.goal.traffic
    used = rate / o.highest_requests_per_s if rate else 1.0
    return Bill(
        model=o.deployment.model.name,
        usd_per_hour=plan.usd_per_hour,
        full_tokens_per_s=plan.output_tokens_per_s / used,
        used_frac=used,
        full="the most within the SLOs",
        input_tokens=lengths.input_tokens,
        output_tokens=lengths.output_tokens,
    )


def _risks(fixed: FixedPlan) -> tuple[str, ...]:
    """Whether the slow end of each interval is still within its SLO."""
    out: list[str] = []
    for metric, limit in fixed.goal.objectives.limits():
        around, word = fixed.plan.intervals.get(metric), metric.removesuffix("_s").upper()
        if around is None:
            continue
        high, most = format_value(around.high_80, "s"), format_value(limit, "s")
        is_met = around.high_80 <= limit
        out.append(
            f"{word}: even the slow end of the 80 % interval, {high}, is within the SLO of {most}."
            if is_met
            else f"{word}: the slow end of the 80 % interval, {high}, misses the SLO of {most}."
        )
    return tuple(out)


def numbers(fixed: FixedPlan) -> tuple[Number, ...]:
    """The figures of the answer, with their intervals."""
    p, o, around = fixed.plan, fixed.operation, fixed.plan.intervals
    rated = bool(fixed.goal.traffic.request_rate_per_s)
    of_rate = None if rated else around.get("output_tokens_per_s")
    found = (
        ("num_devices", "Devices", float(o.num_devices), "", None),
        ("usd_per_hour", "Dollars an hour", p.usd_per_hour, "usd", None),
        ("usd_per_million_tokens", "Dollars per million output tokens", p.usd_per_million_tokens, "usd", None),
        (
            "usd_per_million_total_tokens",
            "Dollars per million tokens, prompts counted",
            p.usd_per_million_total_tokens,
            "usd",
            None,
        ),
        ("ttft_s", "Time to first token (TTFT), mean", o.ttft_s, "s", around.get("ttft_s")),
        ("tpot_s", "Time per output token (TPOT), mean", o.tpot_s, "s", around.get("tpot_s")),
        ("output_tokens_per_s", "Output tokens/s", p.output_tokens_per_s, "", of_rate),
        (
            "highest_requests_per_s",
            "Max request rate (requests/s)",
            o.highest_requests_per_s,
            "",
            capacity_interval(fixed),
        ),
        ("power_w", "Power of all devices", p.power_w, "w", None),
        ("energy_j_per_token", "Energy per output token", p.energy_j_per_token, "j", None),
    )
    return tuple(
        Number(name=n, label=label, value=v, unit=u, interval=i) for n, label, v, u, i in found if v is not None
    )


def _where(answer: PlanAnswer, one: Answer, held: SimulatedPlans | None) -> Section:
    """Memory of the plans, time of a step, the roofs, and what the money pays for."""
    o = answer.plans[0].operation
    memories = [
        (f"{i}. {candidate_said(p.operation.candidate)}", p.operation.memory) for i, p in enumerate(answer.plans, 1)
    ]
    figures = [time_figure(one.estimate), memory_figure(memories), roofline_figure(one.estimate)]
    words: list[str] = []
    if answer.goal.traffic.request_rate_per_s:
        spare = spare_of(answer.goal, o)
        words.append(
            f"Of each dollar, {format_value(1.0 - spare, 'frac')} pays for work at this load and "
            f"{format_value(spare, 'frac')} for "
            "room to spare: the same devices would serve more requests at no higher price."
        )
    simulated = held_against(held) if held else None
    return Section(
        heading="Where time, memory and money go",
        summary=(*words, *(simulated.summary if simulated else ())),
        figures=tuple(f for f in figures if f),
        tables=simulated.tables if simulated else (),
    )


def _launches(plan: Plan) -> list[Command]:
    found = [Command(about=f"Launch it with {engine}", line=line) for engine, line in plan.launch.items()]
    if plan.operation.replicas > 1:
        found = [Command(about=f"{c.about} (one of {plan.operation.replicas} replicas)", line=c.line) for c in found]
    return found


def _with_more(source: Source, devices: int) -> str:
    """The same question with more devices allowed."""
    return replace(source, scenario=merged(source.scenario, {"max_devices": devices})).command


def _limits(source: Source, fixed: FixedPlan) -> tuple[str, ...]:
    """Limitations of the answer."""
    out = [] if source.is_simulated else [MEANS_ONLY]
    out.append(
        "Prompts that share a beginning are computed anew here; with prefix caching the real load may be "
        "lighter (`orrery simulate --prefix-tokens`)."
    )
    if fixed.plan.notes:
        out.append("Number formats change answers. How much is not predicted here: measure it on your own questions.")
    if any("assumed" in i.because for i in fixed.plan.intervals.values()):
        out.append(
            "Some intervals rest on no measured run of this kind and are assumed; the table of accuracy says "
            "which kinds were measured."
        )
    out.append(
        "Prices are those of the day they were published; spot offers, commitments and your own contracts differ."
    )
    return tuple(out)
