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
    """The largest row between ``row`` as it is and ``most_frac`` more: no brake, and latencies within tolerance."""

    def at(num_servers: int, law: Callable[[Reading], Clocks]) -> Drawn:
        return run(replace(row, num_servers=num_servers), at_clock, law)

    return largest(
        row.num_servers,
        lambda count: at(count, rule),
        lambda count: at(count, _never),
        tolerance,
        most_frac,
    )


def largest(
    num_rated: int,
    capped: Callable[[int], Drawn],
    free: Callable[[int], Drawn],
    tolerance: Tolerance,
    most_frac: float = 1.0,
) -> Fit:
    """By bisection the most servers, from those that rated draws allow on, with caps against the same without any."""
    good, bad = num_rated, int(num_rated * (1.0 + most_frac)) + 1
    best = capped(num_rated)
    while bad - good > 1:
        middle = (good + bad) // 2
        found = capped(middle)
        if found.num_brakes == 0 and is_within(found, free(middle), tolerance):
            good, best = middle, found
        else:
            bad = middle
    return Fit(num_servers=good, num_rated=num_rated, drawn=best)


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
