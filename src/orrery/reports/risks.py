"""Risks of a report's first page: how far the answer holds, what moves it most, and what it rests on."""

from collections.abc import Iterator
from dataclasses import replace

from orrery.base.sources import Basis
from orrery.reports.report import Report
from orrery.reports.words import counted, listed, name_and_unit

NUM_FLIPS, NUM_NAMED, MAX_RISKS = 1, 2, 5
"""Points at which the answer turns, inputs that are named, and lines in all: the first page is one page."""


def with_risks(report: Report) -> Report:
    """The report with what its sensitivity, facts and limits say of risk behind what its kind says."""
    return replace(report, risks=(*report.risks, *_found(report))[:MAX_RISKS]) if report.is_feasible else report


def _found(report: Report) -> Iterator[str]:
    if report.sensitivity:
        yield from report.sensitivity.flips[:NUM_FLIPS]
        for metric, figure in list(zip(report.sensitivity.metrics, report.sensitivity.figures, strict=False))[:1]:
            most = figure.summary.split(". ")[0].rstrip(".").removeprefix("Most: ")
            yield f"{metric.label} depends most on: {most}."
    assumed = [fact.name for fact in report.facts if fact.basis is Basis.ASSUMED]
    if assumed:
        named = listed([name_and_unit(name)[0].replace("_", " ") for name in assumed[:NUM_NAMED]])
        others = len(assumed) - NUM_NAMED
        more = f" and {others} more" if others > 0 else ""
        yield f"{counted(len(assumed), 'input')} assumed rather than stated by a source: {named}{more}."
    if report.limits:
        yield report.limits[0]
