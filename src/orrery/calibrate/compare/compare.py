"""Why are these runs below the predicted number? Every cause is fitted, weighed and ranked; then a second one."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.calibrate.compare.answer import Comparison
from orrery.calibrate.compare.fit import Fitted, Progress, fit
from orrery.calibrate.compare.likelihood import chance_of_nothing, scores, shares
from orrery.calibrate.compare.problem import Problem, problem_of
from orrery.calibrate.compare.read import read_measured
from orrery.calibrate.compare.registry import known_causes
from orrery.calibrate.compare.report import answer_of
from orrery.calibrate.runs.read import read_runs
from orrery.evidence.report import most_first
from orrery.evidence.tables import Table

NEEDED_SCORE = 10.0
"""Minimum gain of a second cause: "very strong" on the scale of the information criterion [kass-1995]."""


@typed
def compare_runs(
    paths: Sequence[Path | str], user_settings: Mapping[str, str] | None = None, on_progress: Progress | None = None
) -> Comparison:
    """Rank the causes for which measured runs may be slower than predicted.

    ``paths`` are logs of any known tool, or measured tables; ``said`` are settings that they leave blank
    (``{"model": "llama-3.1-8b", "device": "h100-sxm", "tp": "4"}``).
    """
    return compare_tables([read_runs(paths, user_settings)], on_progress)


def compare_tables(tables: Sequence[Table], on_progress: Progress | None = None) -> Comparison:
    """The same for tables that have been read."""
    measured = read_measured(tables)
    if not measured.cells:
        reasons = "; ".join(f"{rows} x {reason}" for reason, rows in most_first(measured.declined))
        raise ScenarioError(f"No run to compare{': ' + reasons if reasons else ' in the tables'}.")
    problem = problem_of(measured.runs, measured.cells)
    found, silent = fit(problem, known_causes(), on_progress or (lambda done, total: None))
    nothing = chance_of_nothing(problem, found)
    order = list(zip(shares(problem, found), found, strict=True))
    first, second = _pair(problem, found[0]) if found and nothing < 0.5 else (None, None)
    return answer_of(problem, measured, order, first, second, nothing, {c.name: c.hides for c in silent})


def _pair(problem: Problem, first: Fitted) -> tuple[Fitted, Fitted | None]:
    """The first cause, and a second one where what it leaves is far outside the prediction's error."""
    if first.misfit_ratio <= problem.expected_misfit_ratio:
        return first, None
    left = problem.beyond(first.cause, first.severity, first.effect_ratio)
    found, _ = fit(left, [c for c in known_causes() if c is not first.cause])
    if not found or scores(left, found[:1])[0] < NEEDED_SCORE:
        return first, None
    second = found[0]
    if (alone := problem.effect_ratio(second.cause, second.severity)) is not None:
        again, _ = fit(problem.beyond(second.cause, second.severity, alone), [first.cause])
        if again and again[0].misfit_ratio < second.misfit_ratio:
            return again[0], replace(second, effect_ratio=alone)
    return first, second
