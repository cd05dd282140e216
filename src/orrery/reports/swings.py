"""Tornado plots of a sensitivity: one for each figure that inputs move."""

from collections.abc import Sequence
from dataclasses import replace

from orrery.drawing import Axis, SensitivityBar, tornado
from orrery.reports.report import End, Figure, Input, Metric, Sensitivity
from orrery.reports.words import RATES, format_value, listed

MIN_MOVE = 0.001
"""An input that moves a figure by less is named below the plot."""

MAX_PLOTS = 4


def with_figures(found: Sensitivity) -> Sensitivity:
    """The sensitivity with a plot for each of its first figures that anything moves."""
    plots = [figure for metric in found.metrics if (figure := swing_figure(found, metric))]
    return replace(found, figures=tuple(plots[:MAX_PLOTS]))


def swing_figure(found: Sensitivity, metric: Metric) -> Figure | None:
    """The plot of one figure; None where nothing moves it."""
    base = found.base[metric.name]
    moving = [i for i in found.inputs if _move(i, metric.name, base) > MIN_MOVE * abs(base)]
    still = [i.name for i in found.inputs if i not in moving and _has(i, metric.name)]
    if not moving:
        return None
    title = f"What moves it: {metric.label[:1].lower()}{metric.label[1:]}"
    strongest = max(moving, key=lambda i: _move(i, metric.name, base))
    low, high = _ends(strongest, metric.name, base)
    ends = (f"{format_value(v, metric.unit)} at {e.text}" for v, e in ((low, strongest.low), (high, strongest.high)))
    summary = f"Most: {strongest.name} ({', '.join(ends)})."
    summary += f" No effect: {listed(still)}." if still else ""
    summary += "".join(
        f" No answer with {i.name} at {e.text}." for i in found.inputs for e in (i.low, i.high) if e.infeasible
    )
    bars = [SensitivityBar(i.name, *_ends(i, metric.name, base), _describe(i.low), _describe(i.high)) for i in moving]
    svg = tornado(bars, base, Axis(metric.label, metric.unit), title=metric.label)
    return Figure(title=title, summary=summary, svg=svg)


def _describe(one: End) -> str:
    return f"{one.text}: no answer" if one.infeasible else one.text


def _has(one: Input, name: str) -> bool:
    return name in one.low.values or name in one.high.values


def _ends(one: Input, name: str, base: float) -> tuple[float, float]:
    return one.low.values.get(name, base), one.high.values.get(name, base)


def _move(one: Input, name: str, base: float) -> float:
    return max(abs(value - base) for value in _ends(one, name, base))


def moves_table_rows(found: Sensitivity, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Every input's ends and the figures there."""
    units = {m.name: "" if m.unit in RATES else m.unit for m in found.metrics}
    rows: list[tuple[str, ...]] = []
    for one in found.inputs:
        for e in (one.low, one.high):
            cells = (
                (format_value(e.values.get(n), units[n]) for n in names)
                if not e.infeasible
                else ("infeasible",) * len(names)
            )
            rows.append((one.name, e.text, *cells))
    return rows
