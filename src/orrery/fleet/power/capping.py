"""Interface of a rule for lowering clocks (extension point ``fleet.power_cap``): its readings and its decision."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """Clock of the servers of each priority, as a part of the full one."""

    low_ratio: float = 1.0
    high_ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Latest power reading of the row, as a fraction of the breaker's limit, and the clocks in force."""

    drawn_frac: float
    clocks: Clocks
