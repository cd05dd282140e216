"""The report of a training search: the fastest layout, what the others lose, and how to launch it."""

from orrery.execution.train.layout import TrainingLayout
from orrery.planner.training.search import ConstraintRejection
from orrery.reports.frame import Frame, framed, infeasible, prices_of
from orrery.reports.report import Command, Report, Section, Table
from orrery.reports.source import Source
from orrery.reports.swings import with_figures
from orrery.reports.train import (
    LIMITS,
    accuracy,
    describe,
    facts_of,
    headline,
    money_of,
    numbers,
    question,
    risks_of,
    where,
)
from orrery.reports.train_pictures import front_figure
from orrery.reports.train_swings import kept_layout, sensitivity
from orrery.reports.words import changed, format_value, listed
from orrery.scenario.train_plan import TrainPlanAnswer, train_plan

MISSES_SHOWN = 6


def train_plan_report(source: Source, frame: Frame) -> Report:
    """Report what was found: the answer at hand, or that of a search."""
    requested, given = (question(source),), source.answer
    answer = given if isinstance(given, TrainPlanAnswer) else train_plan(source.scenario)
    model = answer.job.model.name
    if answer.infeasible or not answer.plans:
        shortfall = answer.infeasible or {
            "what": "a layout",
            "need": 1.0,
            "have": 0.0,
            "unit": "layouts",
            "smallest_change": "",
        }
        section = Section(heading="What comes closest", summary=(_counts(answer),), listed=_misses(answer))
        return infeasible(
            source, frame, shortfall, model=model, question=requested, notes=answer.notes, alternatives=section
        )
    best = answer.plans[0]
    one = kept_layout(source.scenario, best.layout)
    launches = [Command(about=f"Launch it with {name}", line=line) for name, line in answer.launch.items()]
    cannot = [f"{name} cannot run this layout: {why}" for name, why in answer.launch_refusals.items()]
    return framed(
        source,
        frame,
        model=model,
        question=requested,
        headline=headline(best),
        summary=describe(best),
        money=money_of(best),
        risks=risks_of(best),
        numbers=numbers(best),
        alternatives=_alternatives(answer),
        sensitivity=with_figures(sensitivity(one, best)),
        where=where([(f"{i}. {p.layout}", p) for i, p in enumerate(answer.plans, 1)]),
        assumptions=answer.notes,
        facts=facts_of(best),
        accuracy=accuracy(best),
        limits=(*LIMITS, *cannot),
        commands=(*launches, prices_of(source, answer.job.cluster.device.name)),
    )


def _alternatives(answer: TrainPlanAnswer) -> Section:
    """The next-fastest layouts, the front, and what fell out."""
    best = answer.plans[0]
    rows = tuple(
        (
            str(i),
            _short(p.layout, best.layout),
            format_value(p.step_time_s, "s"),
            format_value(p.mfu_frac, "frac"),
            format_value(p.peak_memory_bytes, "bytes"),
            format_value(p.usd_per_million_tokens, "usd"),
            "the answer" if p is best else f"takes {changed(p.step_time_s, best.step_time_s)}",
        )
        for i, p in enumerate(answer.plans, 1)
    )
    heads = ("", "layout", "step", "share of peak", "memory", "$ per M tokens", "against the first")
    table = Table(title=f"The fastest {len(rows)} layouts", num_words=2, chosen=0, rows=rows, columns=heads)
    figure = front_figure(answer.front, answer.job)
    near = (
        (
            "The first plans lie within the interval of the model's error: measure the best two or three before a long "
            "run.",
        )
        if _is_close(answer)
        else ()
    )
    return Section(
        heading="Alternatives",
        summary=(_counts(answer), *near),
        tables=(table,),
        figures=(figure,) if figure else (),
        listed=_misses(answer),
    )


def _is_close(answer: TrainPlanAnswer) -> bool:
    """Whether the second plan is within the first one's 80 % interval."""
    around = answer.plans[0].intervals().get("step_time_s")
    return len(answer.plans) > 1 and around is not None and answer.plans[1].step_time_s <= around.high_80


def _counts(answer: TrainPlanAnswer) -> str:
    lost = [f"{count:,} for {name}" for name, count in answer.why_not().items()]
    out = f"{answer.num_layouts:,} layouts were considered, {answer.evaluated:,} of them evaluated in full"
    return f"{out}; ruled out: {listed(lost)}." if lost else f"{out}."


def _misses(answer: TrainPlanAnswer) -> tuple[str, ...]:
    """Families of layouts that need more memory, the closest first."""
    return tuple(
        f"{_degrees(k)}: {k.layouts:,} layouts need more memory; the smallest, {k.nearest}, needs "
        f"{format_value(k.need_bytes - k.have_bytes, 'bytes')} more than the "
        f"{format_value(k.have_bytes, 'bytes')} of a device."
        for k in [k for k in answer.rejected if k.nearest is not None][:MISSES_SHOWN]
    )


def _degrees(rejected: ConstraintRejection) -> str:
    degrees = ((n, getattr(rejected.family, n)) for n in ("tp", "cp", "pp", "dp", "ep", "etp"))
    return " ".join(f"{name}{value}" for name, value in degrees if value > 1) or "one device"


UNSAID = ("context_kind", "sharding_group", "secondary_group", "is_sequence_parallel")
"""Choices that a layout's short form leaves out."""


def _short(layout: TrainingLayout, best: TrainingLayout) -> str:
    """The short form, and what it leaves out where that differs from the answer's."""
    others = [
        f"{n.removeprefix('is_').replace('_', ' ')} {getattr(layout, n)}"
        for n in UNSAID
        if getattr(layout, n) != getattr(best, n)
    ]
    return ", ".join([str(layout), *others])
