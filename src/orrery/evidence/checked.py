"""A measured table beside its answers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.evidence.answers import Answers
from orrery.evidence.metrics import FITS
from orrery.evidence.score import relative_error
from orrery.evidence.tables import Table

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Checked:
    """One table beside its answers. ``counted`` marks the rows that state a metric of the schema."""

    table: Table
    measured: dict[str, Floats]
    answers: Answers
    counted: NDArray[np.bool_]

    def scored(self, metric: str) -> NDArray[np.bool_]:
        """The rows that both state and are given a value of ``metric``."""
        if metric not in self.measured or metric not in self.answers.predicted:
            return np.zeros(len(self.table), dtype=np.bool_)
        known = np.isfinite(self.measured[metric]) & np.isfinite(self.answers.predicted[metric])
        known[list(self.answers.declined)] = False
        return known

    def error(self, metric: str, rows: NDArray[np.bool_]) -> Floats:
        """The signed relative error of some rows; of an outcome, 0 when it was foreseen and 1 when not."""
        predicted, measured = self.answers.predicted[metric][rows], self.measured[metric][rows]
        return (predicted != measured).astype(np.float64) if metric == FITS else relative_error(predicted, measured)

    def beats_bound(self) -> NDArray[np.bool_]:
        """The rows whose measurement is faster than the datasheet allows."""
        time_s = self.measured.get("time_s", np.full(len(self.table), np.nan))
        return self.answers.beats_bound | (time_s < self.answers.bound_s)
