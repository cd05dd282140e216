"""The report of a simulated run, and of a search for the highest rate: percentiles, queues, money, and the limits."""

from collections.abc import Mapping
from typing import Any

from orrery.base.cost import Interval
from orrery.base.errors import OrreryError
from orrery.reports.facts import ONLINE, SERVING, accuracy_of, facts_of, priced
from orrery.reports.frame import Frame, framed, infeasible, prices_of
from orrery.reports.money import money_section, served_bill
from orrery.reports.report import Command, Report, Section, Table
from orrery.reports.serving_pictures import memory_figure, roofline_figure, time_figure
from orrery.reports.serving_words import LATENCY, load_said, machines
from orrery.reports.simulate_swings import capacity_sensitivity, sensitivity
from orrery.reports.simulated import figures, numbers, objectives, percentiles
from orrery.reports.source import Source
from orrery.reports.swings import with_figures
from orrery.reports.words import format_value, listed, sure
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate
from orrery.scenario.capacity import find_capacity
from orrery.scenario.objectives import Written, read_objectives
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.simulate import simulate

LIMITS = (
    "The times of steps come from the same rules as `orrery estimate`; their error is in the 80 % intervals. The run "
    "adds chance: other arrivals give other percentiles (see the bar 'chance').",
    "Clients, load balancers and the network to them are not simulated.",
    "What a number format does to answers is not predicted here: measure it on your own questions.",
)

STEADY = ("batch", "concurrency", "rate", "trace")


def simulate_report(source: Source, frame: Frame) -> Report:
    """The run that a file holds, or a new one."""
    plain = _plain_of(source)
    scenario = source.scenario
    question = (_question(source),)
    if "infeasible" in plain:
        return infeasible(
            source,
            frame,
            plain["infeasible"],
            model=scenario.model or "",
            question=question,
            notes=plain.get("notes", ()),
        )
    one = steady(scenario, plain)
    doubts = relative(one) if one else {}
    is_search = "capacity" in plain
    found = capacity_sensitivity(scenario) if is_search else sensitivity(scenario, plain)
    device = plain["deployment"]["device"]
    return framed(
        source,
        frame,
        model=plain["model_id"],
        question=question,
        headline=headline(plain, doubts),
        summary=_describe(plain),
        money=money_section(served_bill(plain, "the most within the SLOs" if is_search else "the simulated load")),
        numbers=numbers(plain, doubts),
        alternatives=_tried(plain) if is_search else None,
        sensitivity=with_figures(found) if found else None,
        where=_where(plain, one),
        assumptions=tuple(plain["notes"]),
        facts=facts_of(one) if one else priced(device),
        accuracy=accuracy_of(ONLINE, SERVING),
        limits=LIMITS,
        commands=(
            Command(about="The same run as a page to explore", line=f"{source.command} --out run.html"),
            prices_of(source, device),
        ),
    )


def _plain_of(source: Source) -> Mapping[str, Any]:
    if source.plain is not None:
        return source.plain
    found = find_capacity(source.scenario) if source.kind == "capacity" else simulate(source.scenario)
    return found.to_json()


def _question(source: Source) -> str:
    s = source.scenario
    requested = [f"{_objective(o)} up to {format_value(o.limit_s, 's')}" for o in read_objectives(s.slo)]
    within = f" The objectives: {listed(requested)}." if requested else ""
    if source.kind == "capacity":
        return f"How many requests/s does {s.model} on {s.device} take, with {_kind(s)}?{within}"
    return f"How does {s.model} on {s.device} serve {load_said(s)}?{within}"


def _kind(s: Scenario) -> str:
    """The requests themselves, however many arrive."""
    if s.trace is not None:
        return f"requests like those of the trace {s.trace}"
    return f"prompts of {s.input_tokens or 0:,} tokens and answers of {s.output_tokens or 0:,} (means)"


def _objective(one: Written) -> str:
    """Format an objective as text, with its share of the requests."""
    share = f" of {one.percent:g} % of the requests" if one.percent else ""
    return f"{LATENCY[one.metric]}{share}"


def steady(scenario: Scenario, plain: Mapping[str, Any]) -> Answer | None:
    """The closed form of one replica at its share of the load: for its facts, steps and errors; None where none is."""
    replicas = scenario.replicas or 1
    settings = {k: v for k, v in scenario.written().items() if k not in STEADY}
    settings |= {
        "input_tokens": max(1, round(plain["total_input_tokens"] / max(1, plain["completed"]))),
        "output_tokens": max(1, round(plain["total_output_tokens"] / max(1, plain["completed"]))),
        "concurrency": max(1, round((plain["running_mean_requests"] + plain["waiting_mean_requests"]) / replicas)),
    }
    settings.pop("input_tokens_std", None)
    try:
        found = estimate(merged(None, settings))
    except OrreryError:
        return None
    return None if isinstance(found, InfeasibleAnswer) else found


def relative(one: Answer) -> dict[str, Interval]:
    """Intervals around 1, by the names of a simulated run: errors of such predictions on measured runs."""
    e = one.estimate
    pairs = {
        "mean_ttft_s": ("ttft_s", e.ttft_s),
        "mean_tpot_s": ("tpot_s", e.tpot_s),
        "mean_e2el_s": ("latency_s", e.latency_s),
    }
    return {
        ours: e.intervals[name].scaled(1.0 / value)
        for ours, (name, value) in pairs.items()
        if name in e.intervals and value > 0
    }


def headline(plain: Mapping[str, Any], doubts: Mapping[str, Interval]) -> str:
    """Served requests, speed, cost, and whether the objectives hold."""
    where = machines(plain["num_devices"], plain["deployment"]["device"])
    model, usd = plain["model_id"], plain.get("usd_per_million_tokens")
    money = f" at {format_value(usd, 'usd')} per million output tokens" if usd is not None else ""
    first = plain["mean_ttft_ms"]
    around = sure(doubts["mean_ttft_s"].scaled(first / 1e3), "s") if "mean_ttft_s" in doubts and first else ""
    times = (
        f"a first token takes {_ms(first)} on average{around}, and 99 of 100 come within {_ms(plain['p99_ttft_ms'])}"
    )
    if found := plain.get("capacity"):
        return (
            f"{where} take{_s(plain)} up to {format_value(found['requests_per_s'], 'requests_per_s')} of "
            f"{model}{money}; "
            f"there {times}; beyond that {found['limited_by']} is the limit."
        )
    rate = format_value(plain["request_throughput"], "requests_per_s")
    met = plain.get("slo_is_met")
    verdict = "" if met is None else "; the objectives hold" if met else "; the objectives are missed"
    share = plain.get("slo_attainment")
    verdict += f" ({format_value(share, 'frac')} of the requests are within)" if share is not None else ""
    return f"{where} serve{_s(plain)} {model} at {rate}{money}: {times}{verdict}."


def _s(plain: Mapping[str, Any]) -> str:
    return "s" if plain["num_devices"] == 1 else ""


def _ms(value: float | None) -> str:
    return format_value(None if value is None else value / 1e3, "s")


def _describe(plain: Mapping[str, Any]) -> tuple[str, ...]:
    """How long the run was, what saturated, and how far chance goes."""
    out = [
        f"Simulated: {plain['completed']:,} requests served in {format_value(plain['duration'], 's')} of "
        f"the deployment's "
        f"time, {plain['failed']:,} refused, {plain['preemptions']:,} preempted (KV cache full)."
    ]
    if plain.get("saturated_first_s") is None:
        out.append("No limit reached.")
    else:
        first = str(plain["saturated_first"]).capitalize()
        out.append(f"First limit reached: {first}, {format_value(plain['saturated_first_s'], 's')} after the start.")
    chance: Mapping[str, list[float]] = plain.get("confidence_95") or {}
    for key, name in (("mean_ttft_ms", "mean time to first token"), ("p99_ttft_ms", "99th percentile of it")):
        if key in chance:
            low, high = (_ms(v) for v in chance[key])
            out.append(f"Chance alone leaves the {name} between {low} and {high} (95 %).")
    return tuple(out)


def _where(plain: Mapping[str, Any], one: Answer | None) -> Section:
    """Latencies, the run over time; and of one replica, steps, memory and roofs."""
    steps = (
        (
            time_figure(one.estimate),
            memory_figure([("one replica", one.estimate.memory)]),
            roofline_figure(one.estimate),
        )
        if one
        else ()
    )
    tables = tuple(t for t in (percentiles(plain), objectives(plain)) if t)
    return Section(
        heading="Time and memory breakdown", tables=tables, figures=(*figures(plain), *(f for f in steps if f))
    )


def _tried(plain: Mapping[str, Any]) -> Section:
    """Every rate that was tried on the way."""
    probes: list[Mapping[str, Any]] = plain["capacity"]["probes"]
    best = plain["capacity"]["requests_per_s"]
    rows = tuple(
        (
            f"{p['requests_per_s']:.4g}",
            "holds" if p["is_met"] else f"{p['limited_by']}" + ("" if p["is_sustained"] else ", the queue grows"),
            format_value(p["attained_frac"], "frac"),
            format_value(p["p99_ttft_s"], "s"),
            format_value(p["p99_tpot_s"], "s"),
        )
        for p in probes
    )
    chosen = next((i for i, p in enumerate(probes) if p["requests_per_s"] == best), -1)
    heads = ("requests/s", "outcome", "within the objectives", "99 % of first tokens", "99 % of further")
    table = Table(title="Rates tried", num_words=2, chosen=chosen, rows=rows, columns=heads)
    return Section(heading="Alternatives: other rates", tables=(table,))
