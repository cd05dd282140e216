"""One door: a report of any source."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isclose
from typing import Any

from orrery.base.arguments import typed
from orrery.reports.frame import Frame
from orrery.reports.kinds import Kind
from orrery.reports.report import Report
from orrery.reports.risks import with_risks
from orrery.reports.source import Source


@typed
def report_of(source: Source, frame: Frame | None = None) -> Report:
    """The report of the question or answer in ``source``."""
    made = _builder(source.kind)(source, frame or Frame())
    is_other = source.kind in ASKED_AGAIN and _differs(source, made)
    return with_risks(replace(made, limits=(OTHER_NUMBERS, *made.limits)) if is_other else made)


ASKED_AGAIN = frozenset({"plan", "estimate", "train", "train-plan"})
"""Answers that are worked out anew; of the others the file itself is reported."""


OTHER_NUMBERS = (
    "The numbers in the file that this report was made from are others: prices, facts or rules have changed since. The "
    "report has today's."
)

SAME = 1e-6


def _differs(source: Source, made: Report) -> bool:
    """Whether the file's own figures are others than those that were worked out again."""
    plans: Sequence[Mapping[str, Any]] = (source.plain or {}).get("plans") or ()
    held: Mapping[str, Any] = plans[0] if plans else source.plain or {}
    pairs = [(number.value, held.get(number.name)) for number in made.numbers]
    return any(
        isinstance(b, int | float) and a is not None and not isclose(a, b, rel_tol=SAME, abs_tol=SAME) for a, b in pairs
    )


def _builder(kind: Kind) -> Callable[[Source, Frame], Report]:
    """Imported late and alone: each brings the commands that it reports on."""
    match kind:
        case "plan":
            from orrery.reports.plan import plan_report as build
        case "estimate":
            from orrery.reports.estimate import estimate_report as build
        case "simulate" | "capacity":
            from orrery.reports.simulate import simulate_report as build
        case "sweep":
            from orrery.reports.sweep import sweep_report as build
        case "train":
            from orrery.reports.train import train_report as build
        case "train-plan":
            from orrery.reports.train_plan import train_plan_report as build
    return build
