"""The report of one configuration: what it does, what it costs, and what other cuts and formats would do."""

import shlex
from collections.abc import Iterator

from orrery.base.errors import OrreryError
from orrery.planner.space import Fixed, formats, tensor_degrees
from orrery.reports.estimate_swings import sensitivity
from orrery.reports.facts import SERVING, accuracy_of, facts_of
from orrery.reports.frame import Frame, framed, infeasible, prices_of
from orrery.reports.money import S_PER_HOUR, Bill, money_section
from orrery.reports.report import Command, Number, Report, Section, Table
from orrery.reports.serving_pictures import memory_figure, roofline_figure, time_figure
from orrery.reports.serving_words import described, estimate_question, formats_said, load_said, machines
from orrery.reports.source import Source
from orrery.reports.swings import with_figures
from orrery.reports.words import BOUND_BY, changed, format_value, sure
from orrery.scenario.ask import Answer, InfeasibleAnswer, estimate
from orrery.scenario.schema import Scenario, merged

MAX_TENSOR = 8
"""Tensor parallelism that is tried beside the answer's."""

LIMITS = (
    "Latencies are means in a steady state; `orrery simulate` has percentiles, queues and bursts.",
    "Prompts that share a beginning are computed anew here (`orrery simulate --prefix-tokens` shares them).",
    "What a number format does to answers is not predicted here: measure it on your own questions.",
    "Prices are those of the day they were published; spot offers, commitments and your own contracts differ.",
)


def estimate_report(source: Source, frame: Frame) -> Report:
    """Report an estimate: the one at hand, or one that is made (milliseconds)."""
    scenario, given = source.scenario, source.answer
    answer = given if isinstance(given, Answer | InfeasibleAnswer) else estimate(scenario)
    model = scenario.model or ""
    if isinstance(answer, InfeasibleAnswer):
        question = (f"How does {model} run on {scenario.device} with {load_said(scenario)}?",)
        return infeasible(source, frame, answer.infeasible, model=model, question=question, notes=answer.notes)
    d = answer.question.deployment
    why = shlex.join(["orrery", "why", "tpot_s", *shlex.split(source.command)[2:]])
    return framed(
        source,
        frame,
        model=d.model.name,
        question=(estimate_question(answer),),
        headline=headline(answer),
        summary=describe(answer),
        money=money_of(answer),
        numbers=numbers(answer),
        alternatives=alternatives(scenario, answer),
        sensitivity=with_figures(sensitivity(scenario, answer)),
        where=where(answer),
        assumptions=answer.notes,
        facts=facts_of(answer),
        accuracy=accuracy_of((answer.question.workload.mode, "closed"), SERVING),
        limits=LIMITS,
        commands=(
            Command(about="Show the breakdown of a number, down to its facts", line=why),
            prices_of(source, d.cluster.device.name),
        ),
    )


def headline(answer: Answer) -> str:
    """Speed and dollars, with their intervals."""
    e, d, usd = answer.estimate, answer.question.deployment, answer.usd_per_million_tokens
    around = sure(answer.intervals().get("usd_per_million_tokens"), "usd")
    money = "" if usd is None else f" at {format_value(usd, 'usd')} per million{around}"
    times = f"a first token takes {format_value(e.ttft_s, 's')}{sure(e.intervals.get('ttft_s'), 's')}"
    if e.tpot_s > 0:
        times += f", each output token after it {format_value(e.tpot_s, 's')}{sure(e.intervals.get('tpot_s'), 's')}"
    where = machines(e.num_devices, d.cluster.device.name)
    rate = f"{format_value(e.output_tokens_per_s, '')} output tokens/s"
    return f"{where} give{'s' if e.num_devices == 1 else ''} {rate} of {d.model.name}{money}: {times}, on average."


def describe(answer: Answer) -> tuple[str, ...]:
    """The cut, what limits it, and the bill."""
    e, d = answer.estimate, answer.question.deployment
    out = [
        f"Layout: {described(d)}. Limited by {BOUND_BY.get(e.bound_by, e.bound_by)}; {e.concurrency:,.3g} requests "
        "run at once."
    ]
    if many := answer.reasoned:
        way = many.ways[-1]
        out.append(
            f"One answer of {way.num_calls:,.3g} calls ({many.shape}) takes {format_value(way.time_s, 's')} and "
            f"{format_value(way.usd, 'usd')}."
        )
    return tuple(out)


def money_of(answer: Answer) -> Section | None:
    """The bill of a configuration at its load; None where it makes no output tokens."""
    e, workload = answer.estimate, answer.question.workload
    usd_per_s = answer.tariff.usd_per_s(e.num_devices, e.power_w)
    if workload.output_tokens <= 0 or not e.output_tokens_per_s:
        return None
    return money_section(
        Bill(
            model=answer.question.deployment.model.name,
            usd_per_hour=None if usd_per_s is None else S_PER_HOUR * usd_per_s,
            full_tokens_per_s=e.output_tokens_per_s,
            used_frac=1.0,
            full="this load",
            input_tokens=workload.input_tokens,
            output_tokens=workload.output_tokens,
        )
    )


def numbers(answer: Answer) -> tuple[Number, ...]:
    """The figures of the answer, with their intervals."""
    e, around = answer.estimate, answer.intervals()
    found = (
        ("ttft_s", "Time to first token (TTFT), mean", "s"),
        ("tpot_s", "Time per output token (TPOT), mean", "s"),
        ("latency_s", "End-to-end latency (E2EL), mean", "s"),
        ("output_tokens_per_s", "Output tokens/s", ""),
        ("total_tokens_per_s", "Tokens/s, prompts counted", ""),
        ("requests_per_s", "Requests/s", ""),
        ("power_w", "Power of all devices", "w"),
        ("energy_j_per_token", "Energy per output token", "j"),
        ("host_power_w", "Power of their machines, at most", "w"),
        ("energy_j_per_token_with_host", "Energy per output token, machines counted", "j"),
        ("peak_memory_bytes", "Peak memory per device", "bytes"),
    )
    out = [Number(name=n, label=label, value=getattr(e, n), unit=u, interval=around.get(n)) for n, label, u in found]
    for n, label in (
        ("usd_per_million_tokens", "Dollars per million output tokens"),
        ("usd_per_million_total_tokens", "Dollars per million tokens, prompts counted"),
    ):
        if (value := getattr(answer, n)) is not None:
            out.append(Number(name=n, label=label, value=value, unit="usd", interval=around.get(n)))
    return tuple(out)


def alternatives(scenario: Scenario, answer: Answer) -> Section | None:
    """The same load in other formats and on fewer or more devices."""
    d = answer.question.deployment
    rows = [_row(a, answer) for a in others(scenario, answer)]
    if not rows:
        return None
    table = Table(
        title="The same load with other layouts or formats",
        num_words=2,
        chosen=0,
        columns=(
            "layout",
            "formats",
            "devices",
            "first token",
            "per token",
            "output tokens/s",
            "$ per M tokens",
            "$ against the answer",
        ),
        rows=(_row(answer, answer), *sorted(rows, key=lambda r: r[2:3])),
    )
    return Section(
        heading="Alternatives",
        tables=(table,),
        summary=(
            f"Each line is the same workload on {d.cluster.device.name} with another layout or other formats. Whether "
            "narrower formats keep the answers good enough is for you to measure.",
        ),
    )


def others(scenario: Scenario, answer: Answer) -> Iterator[Answer]:
    """Other formats at the answer's cut, and its formats at other tensor degrees; what cannot be is left out."""
    d = answer.question.deployment
    kinds = [f for f in formats(d.model, d.cluster.device, Fixed()) if f != d.formats]
    tries = [{"weights": f.weights, "activations": f.activations, "kv": f.kv} for f in kinds]
    degrees = [
        t
        for t in tensor_degrees(d.model, min(MAX_TENSOR, d.cluster.device.devices_per_node))
        if t & (t - 1) == 0 and t != d.layout.tp
    ]
    if d.layout.ep == 1:
        tries += [{"tp": t, "devices": t * d.layout.pp * d.layout.dp * d.layout.cp, "pp": d.layout.pp} for t in degrees]
    for changes in tries:
        try:
            found = estimate(merged(scenario, changes))
        except OrreryError:
            continue
        if isinstance(found, Answer):
            yield found


def _row(one: Answer, answer: Answer) -> tuple[str, ...]:
    e, d = one.estimate, one.question.deployment
    usd, ours = one.usd_per_million_tokens, answer.usd_per_million_tokens
    against = "the answer" if one is answer else changed(usd, ours) if usd is not None and ours else "-"
    return (
        str(d.layout),
        formats_said(d.formats),
        str(e.num_devices),
        format_value(e.ttft_s, "s"),
        format_value(e.tpot_s, "s"),
        f"{e.output_tokens_per_s:,.0f}",
        format_value(usd, "usd"),
        against,
    )


def where(answer: Answer) -> Section:
    """Time of a step, memory, and the roofs."""
    e = answer.estimate
    figures = (time_figure(e), memory_figure([(str(answer.question.deployment.layout), e.memory)]), roofline_figure(e))
    return Section(heading="Time and memory breakdown", figures=tuple(f for f in figures if f))
