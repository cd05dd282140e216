"""How many more servers fit under a breaker than the sum of their rated draws allows."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from orrery.fleet.power.capping import Clocks, Reading
from orrery.fleet.power.phases import Phases
from orrery.fleet.power.row import Drawn, Floats, Row, run


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How much later batches may be than without any cap, by priority, at the median and far out."""

    low_p50_frac: float
    low_p99_frac: float
    high_p50_frac: float
    high_p99_frac: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """The largest row that is good, beside the one that rated draws allow."""

    num_servers: int
    num_rated: int
    drawn: Drawn

    @property
    def more_frac(self) -> float:
        """Servers beyond those that rated draws allow."""
        return self.num_servers / self.num_rated - 1.0


def largest_row(
    row: Row,
    at_clock: Callable[[float], Phases],
    rule: Callable[[Reading], Clocks],
    tolerance: Tolerance,
    most_frac: float = 1.0,
) -> Fit:
    """By bisection between ``row`` as it is and ``most_frac`` more: no brake, and latencies within tolerance."""
    good, bad = row.num_servers, int(row.num_servers * (1.0 + most_frac)) + 1
    best = run(row, at_clock, rule)
    while bad - good > 1:
        middle = (good + bad) // 2
        larger = replace(row, num_servers=middle)
        found = run(larger, at_clock, rule)
        if found.num_brakes == 0 and is_within(found, run(larger, at_clock, _never), tolerance):
            good, best = middle, found
        else:
            bad = middle
    return Fit(num_servers=good, num_rated=row.num_servers, drawn=best)


def is_within(found: Drawn, free: Drawn, tolerance: Tolerance) -> bool:
    """Whether batches are late by no more than is tolerated, against the same row without caps."""
    return all(
        late_frac(capped, plain, percent) <= limit
        for capped, plain, percent, limit in (
            (found.low_s, free.low_s, 50.0, tolerance.low_p50_frac),
            (found.low_s, free.low_s, 99.0, tolerance.low_p99_frac),
            (found.high_s, free.high_s, 50.0, tolerance.high_p50_frac),
            (found.high_s, free.high_s, 99.0, tolerance.high_p99_frac),
        )
    )


def late_frac(capped_s: Floats, plain_s: Floats, percent: float) -> float:
    """How much later a percentile of batches is than without caps; 0 where there are none."""
    if not capped_s.size or not plain_s.size:
        return 0.0
    return float(np.percentile(capped_s, percent) / np.percentile(plain_s, percent)) - 1.0


def _never(reading: Reading) -> Clocks:
    return Clocks()
