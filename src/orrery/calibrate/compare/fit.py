"""The severity at which a cause explains most: a search along one axis, on logarithmic steps.

The ladder of the cause is predicted first. Between its rungs the log of each number is taken as straight in the log of
the severity; the best point of that line is predicted in turn, and so on a few times. What is returned was predicted,
never interpolated. Only causes that may still turn out likely are refined.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log

import numpy as np

from orrery.calibrate.compare.cause import Cause
from orrery.calibrate.compare.cells import Floats
from orrery.calibrate.compare.problem import Problem

Progress = Callable[[int, int], None]

REFINED = 5
"""Causes that are refined: those whose ladders promise most."""

REFINEMENTS = 5
NEAR_RATIO = 0.02
"""A severity as near as this (in log) to one that was predicted needs no prediction of its own."""

BETWEEN = np.linspace(0.0, 1.0, 17)
"""Points between two rungs."""

SILENT_RATIO = 0.005
"""A fault that moves no number by more than this leaves no trace."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A cause at its best severity."""

    cause: Cause
    severity: float  # in the cause's own unit
    effect_ratio: Floats  # what it adds to the log of each cell
    misfit_ratio: float  # of what it leaves


def fit(
    problem: Problem, causes: Sequence[Cause], on_progress: Progress = lambda done, total: None
) -> tuple[list[Fitted], list[Cause]]:
    """Every cause that leaves a trace in these runs at its best severity, best first; and those that leave none."""
    ladders: list[tuple[float, Cause, dict[float, Floats]]] = []
    silent: list[Cause] = []
    for done, cause in enumerate(causes, start=1):
        known = {s: e for s in cause.ladder(problem.runs) if (e := problem.effect_ratio(cause, s)) is not None}
        if any(map(_shows, known.values())):
            ladders.append((_best_between(problem, known)[1], cause, known))
        else:
            silent.append(cause)
        on_progress(done, len(causes))
    ladders.sort(key=lambda entry: entry[0])
    for _, cause, known in ladders[:REFINED]:
        _refine(problem, cause, known)
    found = [_best(problem, cause, known) for _, cause, known in ladders]
    return sorted(found, key=lambda f: f.misfit_ratio), silent


def _refine(problem: Problem, cause: Cause, known: dict[float, Floats]) -> None:
    """Predict where the best severity seems to be, until it is one that was predicted."""
    for _ in range(0 if cause.is_stepwise else REFINEMENTS):
        severity = _best_between(problem, known)[0]
        severity = float(round(severity)) if cause.is_whole else severity
        is_near = severity in known or (not cause.is_whole and any(abs(log(severity / s)) < NEAR_RATIO for s in known))
        if is_near or (found := problem.effect_ratio(cause, severity)) is None:
            return
        known[severity] = found


def _best(problem: Problem, cause: Cause, known: dict[float, Floats]) -> Fitted:
    """The best of what was predicted."""
    misfits = {s: problem.misfit_ratio(e) for s, e in known.items() if _shows(e)}
    best = min(misfits, key=lambda s: misfits[s])
    return Fitted(cause=cause, severity=best, effect_ratio=known[best], misfit_ratio=misfits[best])


def _shows(effect_ratio: Floats) -> bool:
    """Whether a fault moves any number."""
    return float(np.abs(effect_ratio).max()) >= SILENT_RATIO


def _best_between(problem: Problem, known: dict[float, Floats]) -> tuple[float, float]:
    """The best severity on the broken line through what is known, and its misfit."""
    rungs = sorted(known)
    best, least = rungs[0], problem.misfit_ratio(known[rungs[0]])
    for low, high in pairwise(rungs):
        for share in BETWEEN[1:].tolist():
            misfit = problem.misfit_ratio(known[low] * (1.0 - share) + known[high] * share)
            if misfit < least:
                best, least = (float(low ** (1.0 - share) * high**share) if share < 1.0 else high), misfit
    return best, least
