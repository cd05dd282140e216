"""The reports of designs side by side and of techniques on a deployment: the answer, the money and the risk first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from orrery import __version__
from orrery.base.sources import Fact
from orrery.base.units import percent
from orrery.drawing import Axis, Reading, intervals
from orrery.reports.estimate import money_of
from orrery.reports.facts import facts_of
from orrery.reports.kinds import Kind
from orrery.reports.report import Command, Figure, Number, Report, Section, Table
from orrery.reports.risks import with_risks
from orrery.reports.source import Source
from orrery.reports.words import format_value, listed
from orrery.scenario.ask import Answer
from orrery.scenario.compare import DesignsAnswer, in_words
from orrery.scenario.schema import read_scenario
from orrery.scenario.what_if import WhatIfAnswer
from orrery.scenario.what_if.difference import Difference
from orrery.scenario.what_if.metrics import BY_NAME, METRICS, Metric
from orrery.scenario.what_if.result import WhatIf
from orrery.scenario.what_if.side import Side

LEADS = ("usd_per_million_tokens", "step_time_s", "tpot_s", "latency_s")
"""Figures that designs are ranked by: the first that all of them have."""

MAX_COLUMNS = 4
"""Designs that stand side by side as columns; more are rows."""

LIMITS = (
    "A difference counts the error that both sides share once; other devices, engines and models share less of it.",
    "What a number format or a technique does to answers is not predicted here: measure it on your own questions.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One design or technique: its figures, and how far each is from the first."""

    name: str
    side: Side
    difference: Mapping[str, Difference]
    because: str = ""


def compare_report(answer: DesignsAnswer) -> Report:
    """The report of several designs; the best is the least by cost, else by time."""
    rows = [Row(name=d.name, side=d.side, difference=d.difference) for d in answer.designs]
    feasible = [row for row in rows if row.side.figures]
    names = listed([row.name for row in rows])
    metric = next((BY_NAME[name] for name in LEADS if feasible and all(name in r.side.figures for r in feasible)), None)
    best = min(feasible, key=lambda row: row.side.figures[metric.name]) if metric else next(iter(feasible), None)
    return _report(
        "compare",
        rows,
        best,
        metric,
        title=f"{_model(rows)}: designs compared",
        question=(f"Which of {names} is best, and by how much?",),
        headline=_best_of(rows, best, metric),
        notes=answer.notes,
    )


def what_if_report(answer: WhatIfAnswer) -> Report:
    """The report of techniques on one deployment; the best is what its metric gains most by."""
    ranked = sorted(answer.results, key=lambda result: -result.gain)
    without = next((r.without for r in ranked if r.without is not None), None)
    rows = [Row(name="without", side=without, difference={})] if without else []
    tried = [r for r in ranked if r.outcome in ("changes", "makes it fit") and r.having]
    rows += [
        Row(name=r.technique, side=r.having, difference=r.difference, because=r.because) for r in tried if r.having
    ]
    best = next((row for row in rows if ranked and row.name == ranked[0].technique), None)
    return _report(
        "what-if",
        rows,
        best,
        answer.metric,
        title=f"{_model(rows)}: what techniques would do",
        question=(f"What would {listed([r.technique for r in answer.results])} do to this deployment?",),
        headline=_effect(ranked[0]),
        notes=answer.notes,
        untried=tuple(f"{r.technique}: {r.because}" for r in ranked if r not in tried),
    )


def _best_of(rows: Sequence[Row], best: Row | None, metric: Metric | None) -> str:
    if best is None:
        return "None of the designs is feasible."
    if metric is None:
        return (
            f"{best.name} is the only design with figures."
            if len(rows) == 1
            else "The designs have no figure in common."
        )
    value = format_value(best.side.figures[metric.name], metric.unit)
    apart = best.difference.get(metric.name)
    beside = f", {in_words(apart)} beside {rows[0].name}" if apart else ""
    return f"{best.name} has the lowest {_lower(metric.words)}: {value}{beside}."


def _effect(result: WhatIf) -> str:
    apart = result.difference.get(result.metric.name)
    if result.outcome != "changes" or apart is None:
        return f"{result.technique}: {result.outcome}. {result.because}"
    return f"{result.technique} {result.verdict}: {_lower(result.metric.words)} {in_words(apart)}."


def _lower(words: str) -> str:
    return words[0].lower() + words[1:]


def _model(rows: Sequence[Row]) -> str:
    models = dict.fromkeys(str(row.side.settings.get("model", "")) for row in rows)
    return listed([m for m in models if m]) or "Deployments"


def _report(
    kind: str,
    rows: Sequence[Row],
    best: Row | None,
    metric: Metric | None,
    *,
    title: str,
    question: tuple[str, ...],
    headline: str,
    notes: Sequence[str],
    untried: tuple[str, ...] = (),
) -> Report:
    answer = best.side.answer if best else None
    infeasible = next((r.side.infeasible for r in rows if r.side.infeasible), None) if best is None else None
    facts: tuple[Fact, ...] = facts_of(answer) if isinstance(answer, Answer) else ()
    report = Report(
        kind=kind,
        title=title,
        author="",
        made=f"{datetime.now(UTC):%Y-%m-%d}",
        version=__version__,
        question=question,
        settings=dict(rows[0].side.settings) if rows else {},
        infeasible=infeasible,
        headline=headline,
        summary=tuple(row.because for row in (best,) if row and row.because),
        numbers=_numbers(best) if best else (),
        alternatives=_table(rows, best, untried),
        sensitivity=None,
        where=_apart(rows, metric),
        assumptions=tuple(notes),
        facts=facts,
        accuracy=None,
        limits=LIMITS,
        commands=tuple(_command(row) for row in rows),
        money=money_of(answer) if isinstance(answer, Answer) else None,
        risks=tuple(_unsure(rows, metric)),
    )
    return with_risks(report)


def _numbers(row: Row) -> tuple[Number, ...]:
    figures, around = row.side.figures, row.side.intervals
    return tuple(
        Number(name=m.name, label=m.words, value=figures[m.name], unit=m.unit, interval=around.get(m.name))
        for m in METRICS
        if m.name in figures
    )


def _table(rows: Sequence[Row], best: Row | None, untried: tuple[str, ...]) -> Section:
    """All figures, a column for each of a few rows; of many rows the figures that have a short name."""
    every = [m for m in METRICS if any(m.name in row.side.figures for row in rows)]
    if len(rows) <= MAX_COLUMNS:
        columns = ("", *(row.name for row in rows))
        cells = tuple((m.words, *(_cell(row, m) for row in rows)) for m in every)
        chosen = -1
    else:
        short = [m for m in every if m.short]
        columns = ("", *(m.short for m in short))
        cells = tuple((row.name, *(_cell(row, m) for m in short)) for row in rows)
        chosen = next((n for n, row in enumerate(rows) if row is best), -1)
    table = Table(title="In brackets the difference from the first", columns=columns, rows=cells, chosen=chosen)
    infeasible = tuple(f"{row.name}: {row.side.infeasible}" for row in rows if row.side.infeasible)
    return Section(heading="Side by side", summary=(*infeasible, *untried), tables=(table,) if every else ())


def _cell(row: Row, metric: Metric) -> str:
    value = row.side.figures.get(metric.name)
    apart = row.difference.get(metric.name)
    text = "-" if value is None else format_value(value, metric.unit)
    return text if apart is None else f"{text} ({percent(apart.frac, is_signed=True)})"


def _apart(rows: Sequence[Row], metric: Metric | None) -> Section | None:
    """Differences by the ranked figure with their 80 % intervals, drawn."""
    known = [(r.name, r.difference[metric.name]) for r in rows if metric and metric.name in r.difference]
    if not known or metric is None:
        return None
    readings = [
        Reading(name, d.frac, d.frac if d.low_80 is None else d.low_80, d.frac if d.high_80 is None else d.high_80)
        for name, d in known
    ]
    about = f"{metric.words} against {rows[0].name}, with what is left of the 80 % interval when shared errors cancel."
    svg = intervals(readings, Axis(f"Difference in {_lower(metric.words)}", "frac"), title="Difference")
    return Section(heading="Difference", figures=(Figure(title="Difference", summary=about, svg=svg),))


def _unsure(rows: Sequence[Row], metric: Metric | None) -> Sequence[str]:
    """Rows that the ranked figure does not tell from the first."""
    found = [r.name for r in rows if metric and (d := r.difference.get(metric.name)) and not d.is_sure and d.frac]
    if not found or metric is None:
        return ()
    return (f"{_lower(metric.words).capitalize()} does not tell {listed(found)} from {rows[0].name} at 80 %.",)


def _command(row: Row) -> Command:
    kind: Kind = row.side.question
    line = Source(kind=kind, scenario=read_scenario(dict(row.side.settings))).command
    return Command(about=f"{row.name}: ask for it alone", line=line)
