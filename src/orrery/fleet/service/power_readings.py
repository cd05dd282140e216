"""A limit on the draw of a whole service, and what was read of it over a run."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.fleet.power.capping import Clocks, Reading
from orrery.serving.requests import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCap:
    """A limit on the draw of all replicas, the rule near it, and how quick meter and clocks are."""

    limit_w: float
    rule: Callable[[Reading], Clocks]
    low_priority_frac: float = 0.5  # of each pool's replicas
    reading_s: float = 2.0
    delay_s: float = 40.0

    def __post_init__(self) -> None:
        if not (self.limit_w > 0.0 and self.reading_s > 0.0 and self.delay_s >= 0.0):
            raise ScenarioError("power_budget_w, power_reading_s: write watts and seconds above 0, a delay from 0.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerReadings:
    """Readings of a run, and the clocks of low and high priority in force since each change."""

    limit_w: float
    at_s: Floats
    drawn_w: Floats  # mean since the reading before
    changed_s: Floats
    clock_frac: Floats  # (changes, 2): of low and of high priority
    is_low: tuple[bool, ...]  # by engine of the serving loop

    @property
    def over_frac(self) -> float:
        """Share of the readings above the limit."""
        return float((self.drawn_w > self.limit_w).mean()) if self.drawn_w.size else 0.0

    def capped_s(self, end_s: float) -> float:
        """Seconds in which any clock was lowered."""
        lengths_s = np.diff(np.append(self.changed_s, end_s))
        return float(lengths_s[self.clock_frac.min(axis=1, initial=1.0) < 1.0].sum())

    def lowest_clock(self, machine: Ints, from_s: Floats, until_s: Floats) -> Floats:
        """The lowest clock that each request's engine had while the request was there; 1 where none was lowered."""
        low = np.array(self.is_low)[np.maximum(machine, 0)]
        found = np.ones(machine.size)
        starts_s: list[float] = [*self.changed_s.tolist(), inf]
        for k in range(self.changed_s.size):
            start_s, end_s = starts_s[k], starts_s[k + 1]
            of_low, of_high = float(self.clock_frac[k, 0]), float(self.clock_frac[k, 1])
            there = (machine >= 0) & (from_s < end_s) & (until_s > start_s)
            found = np.where(there, np.minimum(found, np.where(low, of_low, of_high)), found)
        return found
