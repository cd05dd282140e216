"""Cross-validated error: each run predicted by constants fitted without it and without any run like it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.base.posterior import bent
from orrery.calibrate.runs.fit import Fitted, Predicts, without
from orrery.calibrate.runs.problem import Cell, Floats, Ints
from orrery.evidence.score import Score, score_errors

SURE = 1.65
"""Standard errors that a gain must be from nothing: five in a hundred get so far by chance."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LeftOut:
    """log(predicted / measured) of every cell with the shipped constants, and with those of the other runs."""

    before: Floats
    after: Floats
    noise: Floats
    groups: Ints

    @property
    def is_better(self) -> bool:
        """Whether the correction helps groups of runs that it was not made from, by more than chance."""
        gain = bent(self.before / self.noise) - bent(self.after / self.noise)
        each = np.array([gain[self.groups == g].mean() for g in dict.fromkeys(self.groups.tolist())])
        return bool(each.mean() > SURE * each.std(ddof=1) / np.sqrt(len(each))) if len(each) > 1 else False

    def scores(self, cells: Sequence[Cell]) -> dict[str, tuple[Score, Score]]:
        """Errors before and after, by metric, in the order in which they occur."""
        out: dict[str, tuple[Score, Score]] = {}
        for metric in dict.fromkeys(c.metric for c in cells):
            mine = np.array([c.metric == metric for c in cells])
            before, after = (score_errors(np.expm1(x[mine])) for x in (self.before, self.after))
            out[metric] = before, after
        return out


def leave_out(
    problem: Predicts, fitted: Fitted, before: Floats, groups: Sequence[int], share: float, tell: Callable[[], None]
) -> LeftOut:
    """Every run again, each group of like runs by the constants that the others settle on.

    ``share`` is how much of the way from the shipped constants is taken (1: all of it).
    """
    run_group = np.array([groups[c.run] for c in problem.cells])
    after = np.full(len(before), np.nan)
    for group in dict.fromkeys(run_group.tolist()):
        out = run_group == group
        mean = without(fitted, ~out) if fitted.names else fitted.prior.mean
        constants = fitted.values(problem.start, fitted.prior.mean + share * (mean - fitted.prior.mean))
        known: dict[int, Mapping[str, float]] = {}
        for i in np.flatnonzero(out).tolist():
            cell = problem.cells[i]
            if cell.run not in known:
                known[cell.run] = problem.predict(cell.run, constants)
                tell()
            after[i] = np.log(known[cell.run][cell.metric] / cell.measured)
    return LeftOut(before=before, after=after, noise=fitted.noise, groups=run_group)
