"""Measured runs and what a prediction without any fault says of them; and what a fault would say instead."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from orrery.base.errors import OrreryError
from orrery.calibrate.compare.cause import Cause
from orrery.calibrate.compare.cells import Cell, Floats, covariance, towards_slower
from orrery.calibrate.compare.run import Run, predict
from orrery.execution.memory import Infeasible

FREEDOM = 4.0
"""Degrees of freedom of Student's law, whose tails residuals are taken to have. Of the intervals fitted for engines
the 95 % ends lie 1.5 times as far out (in log) as the 80 % ends in the median, as in a normal law, but more than twice
as far in a quarter. Here it is 1.8 times."""

TAIL_RATIO = 1.533 / 1.2816
"""The law's 80 % ends over those of a normal one, from which deviations are reckoned."""

EXPECTED_RATIO, SCATTER_RATIO = 1.40, 1.97
"""Mean and deviation of one number's misfit under that law: 5 (psi(5/2) - psi(2)) and 5 sqrt(psi'(2) - psi'(5/2))."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """``residual_ratio`` is what is to be explained: log(measured / predicted), towards slower."""

    runs: tuple[Run, ...]
    cells: tuple[Cell, ...]
    told_ratio: Floats  # log of what is predicted for each cell, towards slower
    residual_ratio: Floats

    @cached_property
    def whitening_ratio(self) -> Floats:
        """L^-1 of the residuals' covariance L L^T."""
        return np.linalg.inv(np.linalg.cholesky(covariance(self.cells))).astype(np.float64)

    def misfit_ratio(self, effect_ratio: Floats | float = 0.0) -> float:
        """Misfit that an effect leaves: -2 log likelihood under Student's law, in units of the prediction's error."""
        left = TAIL_RATIO * (self.whitening_ratio @ (self.residual_ratio - effect_ratio))
        return float((FREEDOM + 1.0) * np.log1p(left**2 / FREEDOM).sum())

    @property
    def expected_misfit_ratio(self) -> float:
        """The most misfit that the prediction's own error brings about: its mean, and three deviations more."""
        n = float(len(self.cells))
        return EXPECTED_RATIO * n + 3.0 * SCATTER_RATIO * sqrt(n)

    def changed(self, cause: Cause, severity: float) -> tuple[Run, ...]:
        """The runs with a fault; those in which it cannot show stay what they are."""
        return tuple(cause.change(run, severity) or run for run in self.runs)

    def effect_ratio(self, cause: Cause, severity: float) -> Floats | None:
        """Change of the log of each cell under a fault; None where some run could not have run with it."""
        try:
            predicted_ratio = told_ratio(self.changed(cause, severity), self.cells, self.runs, self.told_ratio)
        except OrreryError:
            return None
        return None if predicted_ratio is None else predicted_ratio - self.told_ratio

    def beyond(self, cause: Cause, severity: float, effect_ratio: Floats) -> "Problem":
        """The residuals that remain once a fault is taken as given."""
        return Problem(
            runs=self.changed(cause, severity),
            cells=self.cells,
            told_ratio=self.told_ratio + effect_ratio,
            residual_ratio=self.residual_ratio - effect_ratio,
        )


def problem_of(runs: Sequence[Run], cells: Sequence[Cell]) -> Problem:
    """The cells as they stand, before any fault."""
    predicted_ratio = np.array([towards_slower(c.metric, c.predicted) for c in cells])
    measured = np.array([towards_slower(c.metric, c.measured) for c in cells])
    return Problem(
        runs=tuple(runs), cells=tuple(cells), told_ratio=predicted_ratio, residual_ratio=measured - predicted_ratio
    )


def told_ratio(runs: Sequence[Run], cells: Sequence[Cell], known: Sequence[Run], known_ratio: Floats) -> Floats | None:
    """Log of each cell's prediction, towards slower; runs that are those of ``known`` keep what is known."""
    predicted_ratio = known_ratio.copy()
    for number, run in enumerate(runs):
        if run is known[number]:
            continue
        here = [i for i, c in enumerate(cells) if c.run == number]
        found = predict(run, [cells[i].metric for i in here])
        if isinstance(found, Infeasible):
            return None
        for i in here:
            value = found[cells[i].metric].value
            if not 0.0 < value < float("inf"):
                return None
            predicted_ratio[i] = towards_slower(cells[i].metric, value)
    return predicted_ratio
