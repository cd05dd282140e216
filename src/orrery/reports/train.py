"""The report of one training configuration: how long, how much, what limits it, and what other choices would do."""

from collections.abc import Iterator
from typing import Any

from orrery.base.cost import Interval
from orrery.base.errors import OrreryError
from orrery.base.sources import Fact
from orrery.reports.facts import TRAINING, accuracy_of, once, owned, prices
from orrery.reports.frame import Frame, framed, infeasible, prices_of
from orrery.reports.report import Command, Figure, Number, Report, Section, Table
from orrery.reports.serving_words import machines
from orrery.reports.source import Source
from orrery.reports.swings import with_figures
from orrery.reports.train_pictures import memory_figure, pipeline_figure, run_figure, step_figure, tiers_figure
from orrery.reports.train_swings import Trained, kept_layout, sensitivity
from orrery.reports.words import BOUND_BY, changed, format_value, many, sure
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.schema import Scenario, merged
from orrery.scenario.train import TrainAnswer, train
from orrery.scenario.train_offload import OffloadAnswer

LIMITS = (
    "Whether the model learns as well in this precision and with this batch is not predicted here (`orrery scaling`, "
    "`orrery experiment`).",
    "Storage, data loading and evaluation count only where the scenario names them.",
    "Prices are those of the day they were published; spot offers, commitments and your own contracts differ.",
)

MAX_ROWS = 10

USUAL_FRAMEWORKS = ("megatron-lm", "nemo")
"""Frameworks whose measured runs are shown where there are none of the framework that is asked about."""


def question(source: Source) -> str:
    """The job, and its devices."""
    s = source.scenario
    tokens = f"for {many(s.train_tokens)} tokens " if s.train_tokens else ""
    task = f" ({s.task})" if s.task else ""
    ask = "Which layout trains" if source.kind == "train-plan" else "How long does it take to train"
    end = " fastest?" if source.kind == "train-plan" else "?"
    batch = f"{s.global_batch:,} sequences of {s.seq_len:,} tokens a step" if s.global_batch and s.seq_len else ""
    return f"{ask} {s.model}{task} {tokens}on {s.devices:,} x {s.device}, {batch}{end}"


def train_report(source: Source, frame: Frame) -> Report:
    """Report a configuration's cost: the one at hand, or one that is worked out (milliseconds)."""
    requested, scenario, given = (question(source),), source.scenario, source.answer
    answer = given if isinstance(given, TrainAnswer | OffloadAnswer | InfeasibleAnswer) else train(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return infeasible(
            source, frame, answer.infeasible, model=scenario.model or "", question=requested, notes=answer.notes
        )
    one = kept_layout(scenario, answer.layout) if isinstance(answer, TrainAnswer) else scenario
    return framed(
        source,
        frame,
        model=answer.job.model.name,
        question=requested,
        headline=headline(answer),
        summary=describe(answer),
        money=money_of(answer),
        risks=risks_of(answer),
        numbers=numbers(answer),
        alternatives=_alternatives(one, answer),
        sensitivity=with_figures(sensitivity(one, answer)),
        where=where([("this layout", answer)]),
        assumptions=answer.notes,
        facts=facts_of(answer),
        accuracy=accuracy(answer),
        limits=LIMITS,
        commands=(
            Command(about="Search for a faster layout", line=f"{source.command} --plan"),
            prices_of(source, answer.job.cluster.device.name),
        ),
    )


def headline(answer: Trained) -> str:
    """Days and dollars where the run has a length, else the speed; with the 80 % interval."""
    job, around = answer.job, intervals_of(answer)
    where = machines(job.cluster.num_devices, job.cluster.device.name)
    verb = "trains" if job.cluster.num_devices == 1 else "train"
    run, usd, cut = answer.run, answer.usd_per_million_tokens, f"({answer.layout}, {job.recipe.name.upper()})"
    if run:
        money = "" if run.usd is None else f" and {format_value(run.usd, 'usd')}{sure(around.get('usd'), 'usd')}"
        days = f"{format_value(run.days, 'day')}{sure(around.get('days'), 'day')}"
        return f"{where} {verb} {job.model.name} on {many(run.tokens)} tokens in {days}{money} {cut}."
    money = (
        ""
        if usd is None
        else f" at {format_value(usd, 'usd')} per million{sure(around.get('usd_per_million_tokens'), 'usd')}"
    )
    step = f"{format_value(answer.step_time_s, 's')}{sure(around.get('step_time_s'), 's')}"
    return (
        f"{where} {verb} {job.model.name} at {format_value(answer.tokens_per_s, 'tokens_per_s')}{money}: a step of "
        f"{job.tokens_per_step:,.0f} tokens takes {step} {cut}."
    )


def describe(answer: Trained) -> tuple[str, ...]:
    """The limit of the step, and the bill."""
    job = answer.job
    out = [
        f"Limited by {BOUND_BY.get(answer.bound_by, answer.bound_by)}; {format_value(answer.mfu_frac, 'frac')} of the "
        f"devices' peak goes into the model. Framework: {job.framework.name}."
    ]
    if answer.run and answer.run.goodput:
        out.append(
            f"Failures are in it: {format_value(answer.run.goodput.useful_frac, 'frac')} of the time is useful work."
        )
    return tuple(out)


def money_of(answer: Trained) -> Section | None:
    """The hour and the run in dollars; None where no price is known."""
    job, run = answer.job, answer.run
    usd_per_s = answer.tariff.usd_per_s(job.cluster.num_devices, job.cluster.num_devices * answer.power_w)
    if usd_per_s is None:
        return None
    words = [f"The devices cost {format_value(3600 * usd_per_s, 'usd')} an hour."]
    if run and run.usd is not None:
        around = sure(intervals_of(answer).get("usd"), "usd")
        words.append(f"The run costs {format_value(run.usd, 'usd')}{around}, every hour of every device paid for.")
    return Section(heading="Money", summary=tuple(words))


def risks_of(answer: Trained) -> tuple[str, ...]:
    """Whether the high end of its memory fits."""
    capacity = answer.job.cluster.device.memory_capacity_bytes
    memory = intervals_of(answer).get("peak_memory_bytes")
    if memory is None:
        return ()
    high, most = format_value(memory.high_80, "bytes"), format_value(capacity, "bytes")
    if memory.high_80 > capacity:
        return (
            f"It may run out of memory: the high end of the interval, {high}, is more than the {most} of a device. Try "
            "it before a long run.",
        )
    return (f"Memory: the high end of the interval, {high}, is within the {most} of a device.",)


def intervals_of(answer: Trained) -> dict[str, Interval]:
    """The answer's own; dollars and days go with the time of a step, rates with its inverse."""
    around = answer.intervals() if isinstance(answer, TrainAnswer) else {}
    step, run = around.get("step_time_s"), answer.run
    if step is None:
        return around
    each = step.scaled(1.0 / answer.step_time_s)
    along = {
        "usd_per_million_tokens": answer.usd_per_million_tokens,
        "days": run.days if run else None,
        "usd": run.usd if run else None,
    }
    rate = around["tokens_per_s_per_device"].scaled(answer.job.cluster.num_devices)
    return around | {"tokens_per_s": rate} | {n: each.scaled(v) for n, v in along.items() if v is not None}


def numbers(answer: Trained) -> tuple[Number, ...]:
    """The figures of the answer, with their intervals."""
    around = intervals_of(answer)
    found: list[tuple[str, str, float | None, str]] = [
        ("step_time_s", "Time of a step", answer.step_time_s, "s"),
        ("tokens_per_s", "Tokens/s of all devices", answer.tokens_per_s, ""),
        ("tokens_per_s_per_device", "Tokens/s of each device", answer.tokens_per_s_per_device, ""),
        ("mfu_frac", "Share of the peak that goes into the model", answer.mfu_frac, "frac"),
        ("peak_memory_bytes", "Peak memory per device", answer.peak_memory_bytes, "bytes"),
        ("power_w", "Power of a device", answer.power_w, "w"),
        ("energy_j_per_token", "Energy per token", answer.energy_j_per_token, "j"),
        ("usd_per_million_tokens", "Cost ($/1M tokens)", answer.usd_per_million_tokens, "usd"),
    ]
    if run := answer.run:
        found += [
            ("days", "Days of the run", run.days, "day"),
            ("usd", "Dollars of the run", run.usd, "usd"),
            ("energy_j", "Energy of the run", run.energy_j, "j"),
        ]
    return tuple(
        Number(name=n, label=label, value=v, unit=u, interval=around.get(n))
        for n, label, v, u in found
        if v is not None
    )


def facts_of(answer: Trained) -> tuple[Fact, ...]:
    """The device's datasheet, the framework's constants, and the price."""
    job = answer.job
    device, framework = job.cluster.device, job.framework
    owners = ((device.facts, device.name), (framework.facts, framework.name), (prices(answer.tariff), "price"))
    return once(owned(f, owner) for facts, owner in owners for f in facts.values())


def accuracy(answer: Trained) -> Table | None:
    """Measured runs of the framework, else of the usual ones."""
    name = answer.job.framework.name
    return accuracy_of((name,), TRAINING) or accuracy_of(USUAL_FRAMEWORKS, TRAINING)


def where(answers: list[tuple[str, Trained]]) -> Section:
    """Time of the steps, memory, the pipeline and the run of the first."""
    first = answers[0][1]
    figures: list[Figure | None] = [step_figure([(name, a.parts) for name, a in answers])]
    if isinstance(first, OffloadAnswer):
        figures.append(tiers_figure(first))
    else:
        figures += [memory_figure(first), pipeline_figure(first)]
    figures.append(run_figure(first.run) if first.run else None)
    return Section(heading="Time and memory breakdown", figures=tuple(f for f in figures if f))


def _alternatives(one: Scenario, answer: Trained) -> Section | None:
    """The same job with one choice of the layout made otherwise, the fastest first."""
    rows: list[tuple[float, tuple[str, ...]]] = []
    for name, changes in _choices(answer):
        try:
            found = train(merged(one, changes))
        except OrreryError:
            continue
        if isinstance(found, InfeasibleAnswer):
            infeasible = found.infeasible
            rows.append(
                (
                    float("inf"),
                    (name, "-", "-", f"needs {format_value(infeasible.need, infeasible.unit)}", "-", "does not fit"),
                )
            )
        else:
            rows.append((found.step_time_s, _row(name, found, answer)))
    if not rows:
        return None
    ordered = [row for _, row in sorted(rows, key=lambda pair: pair[0])][:MAX_ROWS]
    table = Table(
        title="One choice made otherwise, the fastest first",
        chosen=0,
        columns=("change", "step", "share of peak", "memory", "$ per M tokens", "against the answer"),
        rows=(_row("the answer", answer, answer), *ordered),
    )
    return Section(heading="Alternatives", tables=(table,))


def _choices(answer: Trained) -> Iterator[tuple[str, dict[str, Any]]]:
    layout, is_offload = answer.layout, isinstance(answer, OffloadAnswer)
    sizes = [2 * layout.micro_batch, *([layout.micro_batch // 2] if layout.micro_batch % 2 == 0 else [])]
    yield from ((f"micro-batch of {n}", {"micro_batch": n}) for n in sizes)
    if is_offload:
        return
    yield from (
        (f"recomputation: {k}", {"recompute": k, "recompute_layers": None})
        for k in ("none", "selective", "full")
        if k != layout.recompute
    )
    if layout.num_data_ranks > 1:
        yield from (
            (f"sharding: {k}", {"sharding": k, "sharding_group": None, "secondary_group": None})
            for k in ("none", "zero1", "zero2", "zero3")
            if k != layout.sharding
        )
    if layout.dp % 2 == 0 and layout.ep == 1:
        yield f"tensor parallel {2 * layout.tp}", {"tp": 2 * layout.tp, "dp": layout.dp // 2}
        yield f"pipeline {2 * layout.pp}", {"pp": 2 * layout.pp, "dp": layout.dp // 2}
    if layout.tp % 2 == 0 and layout.ep == 1:
        yield f"tensor parallel {layout.tp // 2}", {"tp": layout.tp // 2, "dp": 2 * layout.dp}


def _row(name: str, one: Trained, answer: Trained) -> tuple[str, ...]:
    against = "the answer" if one is answer else f"takes {changed(one.step_time_s, answer.step_time_s)}"
    return (
        name,
        format_value(one.step_time_s, "s"),
        format_value(one.mfu_frac, "frac"),
        format_value(one.peak_memory_bytes, "bytes"),
        format_value(one.usd_per_million_tokens, "usd"),
        against,
    )
