"""Terminal views of the effects of techniques."""

from collections.abc import Callable

from orrery.base.units import percent, si
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.what_if import WhatIf, WhatIfAnswer
from orrery.scenario.what_if.difference import Difference
from orrery.scenario.what_if.metrics import METRICS, Metric
from orrery.scenario.what_if.result import UNSEEN_GAIN


def print_each(answer: WhatIfAnswer) -> None:
    """One technique after the other: both sides, their difference, from where it helps, what must be measured."""
    out = console()
    for i, result in enumerate(answer.results):
        if i:
            out.print()
        out.print(f"{result.technique}: {result.because}", markup=False, style="bold")
        if result.outcome in ("changes", "no effect"):
            out.print(_sides(result))
        elif result.outcome == "makes it fit":
            out.print(_fitting([result], result.metric))
        for turn in result.break_even:
            out.print(f"Break-even, {turn}.", markup=False)
        if result.lever.gains:
            out.print(f"Gains: {result.lever.gains} Costs: {result.lever.costs}", markup=False)
        for what in result.lever.measure:
            out.print(f"Measure: {what}.", markup=False)
        if result.without is not None:
            out.print(f"Run it: {result.command}", markup=False, soft_wrap=True)


def print_ranking(answer: WhatIfAnswer) -> None:
    """Techniques by what they would bring; below them those without effect or that cannot be had, and why."""
    out = console()
    moved = [r for r in answer.results if r.outcome == "changes"]
    fitting = [r for r in answer.results if r.outcome == "makes it fit"]
    if fitting:
        out.print(_fitting(fitting, answer.metric))
    if moved:
        out.print(_ranking(moved, answer.metric))
    elif not fitting:
        out.print("No technique changes this deployment.")
    for words, names in _states(moved).items():
        out.print(f"  {words}: {', '.join(names)}", markup=False)
    if unmeasured := _grouped([*fitting, *moved], lambda r: "; ".join(r.lever.measure)):
        out.print("\n[bold]Measure first[/]")
        for what, names in unmeasured.items():
            out.print(f"  {', '.join(names)}: {what}", markup=False)
    for outcome, words in (("no effect", "No effect"), ("infeasible", "Infeasible"), ("does not apply", "Not tried")):
        if rest := [r for r in answer.results if r.outcome == outcome]:
            out.print(f"\n[bold]{words}[/] ({len(rest)})")
            for because, names in _grouped(rest, _because).items():
                out.print(f"  {', '.join(names)}: {because}", markup=False)


def _ranking(moved: list[WhatIf], metric: Metric) -> Sheet:
    drawn = Sheet("technique", "without", "with", "difference", "80 % interval", title=f"By {metric.words}")
    drawn.add_column("", justify="left")
    beside = [m for m in METRICS if m.short and m != metric and any(m.name in r.difference for r in moved)]
    for other in beside:
        drawn.add_column(other.short, minor=1)
    for r in moved:
        shown = r.metric
        d = r.difference.get(shown.name)
        drawn.add_row(
            r.technique,
            _value(r, shown, "without"),
            _value(r, shown, "with"),
            _percent(d),
            _between(d),
            r.verdict,
            *(_percent(r.difference.get(other.name)) for other in beside),
        )
    return drawn


def _fitting(fitting: list[WhatIf], metric: Metric) -> Sheet:
    """Techniques with which a deployment fits that does not without them, and what it then does."""
    shown = [m for m in METRICS if any(r.having and m.name in r.having.figures for r in fitting)]
    drawn = Sheet("makes it fit", *(m.short or m.words for m in (metric, *(m for m in shown if m != metric))))
    for r in fitting:
        drawn.add_row(r.technique, *(_value(r, m, "with") for m in (metric, *(m for m in shown if m != metric))))
    return drawn


def _states(moved: list[WhatIf]) -> dict[str, list[str]]:
    """Names of techniques whose "without" is not the deployment as it is, by the reason."""
    words = {
        "in use": "in use here; without is with it off",
        "default": "in use by default; without is with it off",
    }
    found: dict[str, list[str]] = {}
    for r in moved:
        if r.state in words:
            found.setdefault(words[r.state], []).append(r.technique)
        if r.lever.parts_replicas and r.without is not None:
            count = r.without.settings.get("replicas", 1)
            found.setdefault(f"compared with {count} replicas, on as many devices", []).append(r.technique)
    return found


def _grouped(results: list[WhatIf], by: Callable[[WhatIf], str]) -> dict[str, list[str]]:
    """Names by a text, so that each text stands once; results without one are left out."""
    found: dict[str, list[str]] = {}
    for r in results:
        if text := by(r):
            found.setdefault(text, []).append(r.technique)
    return found


def _because(result: WhatIf) -> str:
    return result.because.removeprefix("no effect on this deployment: ")


def _sides(result: WhatIf) -> Sheet:
    drawn = Sheet("", "without", "with", "difference", "80 % interval")
    for metric in METRICS:
        if metric.name in result.difference:
            d = result.difference[metric.name]
            drawn.add_row(
                metric.words,
                _value(result, metric, "without"),
                _value(result, metric, "with"),
                _percent(d),
                _between(d),
            )
    return drawn


def _value(result: WhatIf, metric: Metric, which: str) -> str:
    side = result.without if which == "without" else result.having
    value = side.figures.get(metric.name) if side else None
    return "-" if value is None else si(value, metric.unit)


def _percent(d: Difference | None) -> str:
    return "-" if d is None else "none" if abs(d.frac) < UNSEEN_GAIN else percent(d.frac, 1, is_signed=True)


def _between(d: Difference | None) -> str:
    if d is None or d.low_80 is None or d.high_80 is None or abs(d.frac) < UNSEEN_GAIN:
        return ""
    return f"{percent(d.low_80, 1, is_signed=True)} to {percent(d.high_80, 1, is_signed=True)}"
