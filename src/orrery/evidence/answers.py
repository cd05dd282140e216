"""Answers to the rows of one table: predictions with intervals, or the reason why there is none."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orrery.base.cost import Interval, Spread
from orrery.kernels.residual.error_range import Spreads

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

INTERVAL = ("low_80", "high_80", "low_95", "high_95")


@dataclass(slots=True, eq=False)
class Answers:
    """Filled in row by row or group by group; NaN and the empty string mean: nothing said yet."""

    num_rows: int
    predicted: dict[str, Floats] = field(default_factory=dict[str, Floats])
    intervals: dict[str, dict[str, Floats]] = field(default_factory=dict[str, dict[str, Floats]])
    declined: dict[int, str] = field(default_factory=dict[int, str])
    assumed: Counter[str] = field(default_factory=Counter[str])
    bound_s: Floats = field(default_factory=lambda: np.empty(0))  # the least time that the datasheet allows a kernel
    beats_bound: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))  # of a batch that beat it
    compute_s: Floats = field(default_factory=lambda: np.empty(0))  # bare roofs: peak arithmetic,
    memory_s: Floats = field(default_factory=lambda: np.empty(0))  # and minimal bytes at the stated bandwidth

    def __post_init__(self) -> None:
        self.bound_s, self.compute_s, self.memory_s = (np.full(self.num_rows, np.nan) for _ in range(3))
        self.beats_bound = np.zeros(self.num_rows, np.bool_)

    def decline(self, rows: Iterable[int], reason: str) -> None:
        """Say once for each row why there is no prediction; the first reason stays."""
        for row in rows:
            self.declined.setdefault(int(row), reason)

    def predict(self, metric: str, rows: Rows, values: Floats, spread: Spread | Spreads | None = None) -> None:
        """Predictions of a metric for some rows, with the spread of the rule that made them."""
        self._column(metric)[rows] = values
        if spread is not None:
            for word in INTERVAL:
                self.intervals[metric][word][rows] = values * getattr(spread, f"{word}_ratio")

    def predict_one(self, metric: str, row: int, value: float, interval: Interval | None = None) -> None:
        """The prediction of a metric for one row, with its interval."""
        self._column(metric)[row] = value
        if interval is not None:
            for word in INTERVAL:
                self.intervals[metric][word][row] = getattr(interval, word)

    def inside(self, metric: str, measured: Floats, percent: int) -> Floats:
        """1 where the interval holds the measurement, 0 where it does not, NaN where no interval is stated."""
        bounds = self.intervals[metric]
        low, high = bounds[f"low_{percent}"], bounds[f"high_{percent}"]
        held = ((measured >= low) & (measured <= high)).astype(np.float64)
        return np.where(np.isnan(low), np.nan, held)

    def _column(self, metric: str) -> Floats:
        if metric not in self.predicted:
            self.predicted[metric] = np.full(self.num_rows, np.nan)
            self.intervals[metric] = {word: np.full(self.num_rows, np.nan) for word in INTERVAL}
        return self.predicted[metric]
