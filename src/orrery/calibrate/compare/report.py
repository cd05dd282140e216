"""A comparison as text: the verdict, the causes with what speaks for and against each, and every number."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log

import numpy as np

from orrery.base.units import percent
from orrery.calibrate.compare.answer import CauseFit, Compared, Comparison, Verdict
from orrery.calibrate.compare.cells import SPEEDS, Cell, Floats
from orrery.calibrate.compare.fit import Fitted
from orrery.calibrate.compare.next_run import next_run
from orrery.calibrate.compare.problem import Problem
from orrery.calibrate.compare.read import Measured
from orrery.calibrate.compare.run import Z_80

EXPLAINED_FRAC, PARTLY_FRAC = 0.8, 0.4
"""Shares of the misfit from which on runs count as explained, and as partly explained."""

DOUBTFUL_FRAC = 0.8
"""Below this chance that nothing is wrong the likeliest cause is mentioned all the same."""

CLOSE = 0.05
"""A cause whose evidence is above this share of another's cannot be told from it."""

TOLD = 3
"""Numbers that are listed for and against a cause."""


def answer_of(
    problem: Problem,
    measured: Measured,
    order: Sequence[tuple[float, Fitted]],
    first: Fitted | None,
    second: Fitted | None,
    nothing: float,
    excluded: Mapping[str, str],
) -> Comparison:
    """Return the comparison as an answer, with its summary as text."""
    effect: Floats = np.zeros(len(problem.cells))
    if first is not None:
        effect = first.effect_ratio + (second.effect_ratio if second else 0.0)
    suspects = tuple(_suspect(problem, measured, f, share, order) for share, f in order)
    if second is not None and first is not None:  # the first one's severity beside the second
        suspects = (
            replace(suspects[0], severity=first.severity, severity_said=_describe(measured, first)),
            *suspects[1:],
        )
    explained = 1.0 - problem.misfit_ratio(effect) / max(problem.misfit_ratio(), 1e-12)
    verdict = _verdict(problem, nothing, explained)
    other = _suspect(problem, measured, second, 1.0, ()) if second else None
    return Comparison(
        verdict=verdict,
        summary=_summary(verdict, problem, suspects, other, explained, nothing),
        nothing_frac=nothing,
        suspects=suspects,
        second=other,
        excluded=excluded,
        next_run=next_run(measured.runs, order[0][1], order[1][1]) if first is not None and len(order) > 1 else None,
        cells=tuple(_compared(measured, c, float(e)) for c, e in zip(problem.cells, effect, strict=True)),
        num_runs=len(measured.runs),
        declined=measured.declined,
        assumed=measured.assumed,
    )


def _verdict(problem: Problem, nothing: float, explained: float) -> Verdict:
    """In words, from the chance that nothing is wrong and the share that is explained."""
    is_fast = _typical_ratio(problem) < 0.0
    if nothing >= 0.5:
        if problem.misfit_ratio() <= problem.expected_misfit_ratio:
            return "within the interval"
        return "faster than predicted" if is_fast else "unexplained"
    if explained >= EXPLAINED_FRAC:
        return "explained"
    return "partly explained" if explained >= PARTLY_FRAC else "unexplained"


def _summary(
    verdict: Verdict,
    problem: Problem,
    suspects: Sequence[CauseFit],
    second: CauseFit | None,
    explained: float,
    nothing: float,
) -> str:
    """One sentence."""
    typical = f"{_slower(_typical_ratio(problem), 'step')} than predicted in the median"
    if verdict == "within the interval":
        description = f" If anything: {suspects[0].severity_said}." if suspects and nothing < DOUBTFUL_FRAC else ""
        return f"{typical}: within the interval, nothing to explain.{description}"
    if verdict == "faster than predicted":
        return f"{typical}: no cause of slowness explains that; is the deployment what the rows say?"
    if verdict == "unexplained":
        return f"{typical}: no known cause explains it."
    also = f"; and {second.severity_said}" if second else ""
    return f"{typical}; {suspects[0].severity_said}{also} explains {percent(explained)} of it."


def _suspect(
    problem: Problem, measured: Measured, fitted: Fitted, share: float, order: Sequence[tuple[float, Fitted]]
) -> CauseFit:
    top = order[0][0] if order else 1.0
    close = tuple(f.cause.name for s, f in order if f is not fitted and s >= CLOSE * share and share >= CLOSE * top)
    speaks_for, against = _pattern(problem, measured, fitted)
    return CauseFit(
        cause=fitted.cause.name,
        title=fitted.cause.title,
        evidence_frac=share,
        explained_frac=max(0.0, 1.0 - fitted.misfit_ratio / max(problem.misfit_ratio(), 1e-12)),
        severity=fitted.severity,
        severity_said=_describe(measured, fitted),
        shows=fitted.cause.shows,
        hides=fitted.cause.hides,
        speaks_for=speaks_for,
        speaks_against=against,
        checks=fitted.cause.checks,
        not_told_from=close,
    )


def _describe(measured: Measured, fitted: Fitted) -> str:
    """The severity as text, for the first run in which the cause shows."""
    shown = next((r for r in measured.runs if fitted.cause.change(r, fitted.severity) is not None), measured.runs[0])
    return fitted.cause.describe(shown, fitted.severity)


def _pattern(problem: Problem, measured: Measured, fitted: Fitted) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The numbers that a cause explains best, and those that it leaves furthest off, in deviations."""
    deviation = np.array([c.deviation_ratio for c in problem.cells])
    left = problem.residual_ratio - fitted.effect_ratio
    gain = (np.abs(problem.residual_ratio) - np.abs(left)) / deviation
    best = [int(i) for i in np.argsort(-gain)[:TOLD] if gain[i] > 0.5]
    worst = [int(i) for i in np.argsort(-np.abs(left) / deviation)[:TOLD] if abs(left[i]) > deviation[i]]

    def describe(i: int) -> str:
        cell, found, says = problem.cells[i], float(problem.residual_ratio[i]), float(fitted.effect_ratio[i])
        where = f"{measured.runs[cell.run].name}, {cell.metric}"
        return f"{where}: {_slower(found, cell.kind)} than predicted; this cause says {_slower(says, cell.kind)}"

    return tuple(map(describe, best)), tuple(map(describe, worst))


def _compared(measured: Measured, cell: Cell, effect: float) -> Compared:
    slower = cell.slower_ratio
    run = measured.runs[cell.run]
    return Compared(
        run=run.name,
        source=run.source,
        metric=cell.metric,
        measured=cell.measured,
        predicted=cell.predicted,
        slower_frac=_slower_frac(slower),
        with_cause_frac=_slower_frac(slower - effect),
        is_inside=abs(slower) <= Z_80 * cell.deviation_ratio,
    )


def _slower_frac(ratio: float) -> float:
    """A residual in log as a share."""
    return exp(min(ratio, log(1e9))) - 1.0


def _slower(ratio: float, kind: str) -> str:
    """``62% slower``; of power, cache and memory more or less."""
    share = _slower_frac(ratio)
    if kind in SPEEDS:
        return f"{percent(abs(share))} {'slower' if share >= 0 else 'faster'}"
    return f"{percent(abs(share))} {'more' if (share >= 0) == (kind == 'memory') else 'less'}"


def _typical_ratio(problem: Problem) -> float:
    """The median residual of the numbers that are about speed, or of all where none is."""
    speeds = [i for i, c in enumerate(problem.cells) if c.kind in SPEEDS]
    return float(np.median(problem.residual_ratio[speeds or slice(None)]))
