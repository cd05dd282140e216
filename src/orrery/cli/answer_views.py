"""Terminal views of the cost of one answer that takes many calls."""

from collections.abc import Callable
from dataclasses import fields

from rich.console import Console

from orrery.base.units import figures, percent, text
from orrery.cli.output import console
from orrery.cli.scatter import LETTERS, can_plot, lettered
from orrery.cli.sheet import Sheet
from orrery.scenario.answer_studies import Study
from orrery.scenario.answer_ways import Budget, Reasoned, SampleCount, spent

COLUMNS, HEIGHT = 96, 14
"""Largest width and the height of the picture, in characters."""

Row = tuple[str, Callable[[SampleCount], str]]


def print_answer(found: Reasoned) -> None:
    """Every way beside one plain call, and which of them are worth their price."""
    out = console()
    knobs = ", ".join(
        f"{f.name} {getattr(found.knobs, f.name)}" for f in fields(found.knobs) if f.name != found.knobs.samples
    )
    out.print(
        f"\n[bold]One answer by {found.shape}[/]{f' ({knobs})' if knobs else ''}; {found.num_questions} asked at once",
        highlight=False,
    )
    ways = (found.one_call, *found.ways)
    table = Sheet("", "one call", *(_heading(way) for way in found.ways))
    for label, cell_of in _rows(found):
        table.add_row(label, *map(cell_of, ways))
    out.print(table)
    if found.front and len(found.ways) > 1:
        _draw(out, found, ways)
    for study in found.studies:
        _print_study(out, study)
    if found.budget:
        _print_budget(out, found.budget)


def _print_budget(out: Console, budget: Budget) -> None:
    """The best way of each shape within the budget."""
    out.print(f"\n[bold]What ${figures(budget.usd)} an answer buy, the best first[/]", highlight=False)
    if not budget.ranked:
        out.print(f"  nothing: the cheapest way costs ${figures(budget.cheapest_usd)}", highlight=False)
        return
    table = Sheet("way", "samples", "right", "a sample is right", "price", "time")
    for one in budget.ranked:
        w = one.way
        cells = (_share(w.right_frac), _share(w.coverage_frac), _usd(w.usd), text(w.time_s, "s"))
        table.add_row(one.shape, f"{w.num_samples}", *cells)
    out.print(table)


def _print_study(out: Console, study: Study) -> None:
    """Its figures a line each, and its table."""
    out.print(f"\n[bold]{study.title}[/]", highlight=False)
    for name, value in study.figures.items():
        out.print(f"  {_words(name)}: {_cell(value)}", highlight=False, markup=False)
    if study.rows:
        table = Sheet(*map(_words, study.rows[0]))
        for row in study.rows:
            table.add_row(*map(_cell, row.values()))
        out.print(table)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "?" if value is None else figures(value, 4) if isinstance(value, int | float) else str(value)


def _heading(way: SampleCount) -> str:
    return "an answer" if way.num_samples is None else f"{way.num_samples} sample{'s' if way.num_samples > 1 else ''}"


def _rows(found: Reasoned) -> list[Row]:
    """Lines of the table; those that say nothing here are left out."""
    ways = (found.one_call, *found.ways)
    rows: list[Row] = [
        ("calls", lambda w: figures(w.num_calls, 4)),
        ("prompt tokens", lambda w: f"{w.prompt_tokens:,.0f}"),
        ("  of them shared", lambda w: f"{w.shared_tokens:,.0f}"),
        ("tokens written", lambda w: f"{w.answer_tokens:,.0f}"),
        ("time to the answer", lambda w: text(w.time_s, "s")),
    ]
    if len(found.ways) == 1:
        rows.append(
            (
                "  80 % interval",
                lambda w: " to ".join(text(end, "s") for end in (w.time_interval.low_80, w.time_interval.high_80)),
            )
        )
    if any(w.offline_s for w in ways):
        rows.append(("time before the question", lambda w: text(w.offline_s, "s")))
    rows.append(("cache held at most", lambda w: text(w.kv_peak_bytes, "bytes")))
    if any(w.num_waves > 1 for w in ways):
        rows.append(("waves, as no more fits", lambda w: f"{w.num_waves}"))
    rows.append(("energy", lambda w: text(w.energy_j, "j")))
    if found.one_call.usd is not None:
        rows.append(("price", lambda w: _usd(w.usd)))
    rows.append(("limited by", lambda w: w.bound_by))
    if any(w.coverage_frac is not None for w in found.ways):
        rows.append(("a sample is right", lambda w: _share(w.coverage_frac)))
    if any(w.right_frac is not None for w in found.ways):
        rows.append(("the answer is right", lambda w: _share(w.right_frac)))
        rows.append(("price of a right answer", lambda w: _usd(w.usd_per_right)))
    if front := found.front:
        rows.append(("nothing cheaper is as good", lambda w: "yes" if w in front else "no"))
    return rows


def _draw(out: Console, found: Reasoned, ways: tuple[SampleCount, ...]) -> None:
    """How often an answer is right against its cost, where a picture says anything."""
    if not can_plot(out):
        return
    is_money = found.one_call.usd is not None
    scale = 1000.0 if is_money else 1.0
    points = [(mark, spent(w) * scale, getattr(w, found.worth)) for mark, w in zip(LETTERS, ways, strict=False)]
    y = "the answer is right" if found.worth == "right_frac" else "a sample is right"
    labels = ("$ for 1,000 answers" if is_money else "J per answer", y)
    out.print(lettered(points, labels, min(out.width, COLUMNS), HEIGHT), markup=False, highlight=False)
    marks = [f"{mark} {_heading(w)}" for mark, w in zip(LETTERS[1:], found.ways, strict=False)]
    out.print("  a one call, " + ", ".join(marks), markup=False)


def _usd(value: float | None) -> str:
    return "?" if value is None else f"${figures(value)}"


def _share(value: float | None) -> str:
    return "?" if value is None else percent(value, 1)
