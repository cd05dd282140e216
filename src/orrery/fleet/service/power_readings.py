"""Limits on the draw of replicas, and what was read of it over a run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.fleet.power.capping import Clocks, Reading
from orrery.serving.requests import Floats, Ints

Flags = NDArray[np.bool_]


def full_clocks(reading: Reading) -> Clocks:
    """Full clocks, whatever is drawn: of what is metered alone."""
    del reading
    return Clocks()


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLimit:
    """A breaker: what stands behind it, what it carries, and the rule near its limit."""

    name: str = "fleet"
    kind: str = "fleet"  # or row, rack
    limit_w: float = inf  # inf: metered alone
    rule: Callable[[Reading], Clocks] = full_clocks
    racks: frozenset[str] | None = None  # None: every replica stands behind it

    def __post_init__(self) -> None:
        if not self.limit_w > 0.0:
            raise ScenarioError(f"power: the limit of {self.name} is {self.limit_w:g} W; write watts above 0.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerCap:
    """All limits on a service's draw, and how quick meters and clocks are. A replica runs at the lowest clock that the
    limits above it ask for."""

    limits: tuple[PowerLimit, ...]
    low_priority_frac: float = 0.5  # of the replicas of each pool that does not say its priority
    reading_s: float = 2.0
    delay_s: float = 40.0

    def __post_init__(self) -> None:
        if not (self.reading_s > 0.0 and self.delay_s >= 0.0):
            raise ScenarioError("power_reading_s, power_delay_s: write seconds above 0, and a delay from 0.")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LimitReadings:
    """Readings at one limit, and the clocks of low and high priority that its rule put in force."""

    limit: PowerLimit
    rated_w: float  # of all replicas behind it
    is_behind: Flags  # by replica
    drawn_w: Floats  # mean since the reading before
    changed_s: Floats
    clock_frac: Floats  # (changes, 2): of low and of high priority

    @property
    def over_frac(self) -> float:
        """Share of the readings above the limit."""
        return float((self.drawn_w > self.limit.limit_w).mean()) if self.drawn_w.size else 0.0

    @property
    def oversubscribed_frac(self) -> float | None:
        """Rated draw of what stands behind it beyond the limit, as a part of it; None where there is no limit."""
        return self.rated_w / self.limit.limit_w - 1.0 if np.isfinite(self.limit.limit_w) else None

    def throttled_s(self, end_s: float) -> float:
        """Seconds in which this limit's rule had lowered any clock."""
        return _lowered_s(self.changed_s, self.clock_frac, end_s)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerReadings:
    """Readings of a run at every limit, the whole fleet's first, and the clocks that were in force."""

    at_s: Floats
    limits: tuple[LimitReadings, ...]
    is_low: Flags  # by replica
    replica_of_machine: Ints
    changed_s: Floats = field(default_factory=lambda: np.zeros(0))
    clock_frac: Floats = field(default_factory=lambda: np.zeros((0, 0)))  # (changes, replicas)

    def capped_s(self, end_s: float) -> float:
        """Seconds in which the clock of any replica was lowered."""
        return _lowered_s(self.changed_s, self.clock_frac, end_s)

    def lowest_clock(self, machine: Ints, from_s: Floats, until_s: Floats) -> Floats:
        """The lowest clock that each request's engine had while the request was there; 1 where none was lowered."""
        return self._lowest(self.changed_s, self.clock_frac, machine, from_s, until_s)

    def lowest_clock_at(self, number: int, machine: Ints, from_s: Floats, until_s: Floats) -> Floats:
        """The same, counting what one of the limits asked for alone."""
        one = self.limits[number]
        clock = np.where(one.is_behind, np.where(self.is_low, one.clock_frac[:, :1], one.clock_frac[:, 1:]), 1.0)
        return self._lowest(one.changed_s, clock, machine, from_s, until_s)

    def _lowest(self, changed_s: Floats, clock: Floats, machine: Ints, from_s: Floats, until_s: Floats) -> Floats:
        found = np.ones(machine.size)
        replica = self.replica_of_machine[np.maximum(machine, 0)]
        starts_s: list[float] = [*changed_s.tolist(), inf]
        for k in range(changed_s.size):
            there = (machine >= 0) & (from_s < starts_s[k + 1]) & (until_s > starts_s[k])
            found[there] = np.minimum(found[there], clock[k, replica[there]])
        return found


def _lowered_s(changed_s: Floats, clock_frac: Floats, end_s: float) -> float:
    """Seconds between changes in which any of the clocks was lowered."""
    lengths_s = np.diff(np.append(changed_s, end_s))
    return float(lengths_s[clock_frac.min(axis=1, initial=1.0) < 1.0].sum())
