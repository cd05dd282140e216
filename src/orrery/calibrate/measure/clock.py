"""Timing one call: warmed up, repeated until the clock can tell, medians, outliers dropped and counted."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np

AGREE_FRAC = 0.05
"""Two samples in a row that differ by less are warm."""

MAX_WARM_SAMPLES = 10
MAX_GROWTH = 100
"""How many times longer a sample becomes at once, while it is too short."""

RESOLVED_RATIO = 100.0
"""A sample lasts so many times the clock's step, so that the step is below a hundredth of it."""

MIN_AT_ALL = 3
OVERRUN_RATIO = 4.0
"""A call so slow that ``least_samples`` would take more than this many budgets is sampled ``MIN_AT_ALL`` times."""

MAX_SAMPLES = 200
"""A sample lasts at least this part of the budget: short enough to fall between two interruptions."""

NORMAL, NORMAL_QUARTILES = 1.4826, 1.349
"""A normal distribution's standard deviation over its median absolute deviation; its quartiles' distance over that."""

OUTLIER_RATIO = 3.5
"""Samples further from the median than so many robust deviations are dropped, as Iglewicz and Hoaglin (1993) advise."""

MIN_FOR_OUTLIERS = 5
"""Smallest number of samples of which any is called an outlier."""

MIN_SCALE_FRAC = 1.0 / RESOLVED_RATIO
"""The least robust deviation for that: what differs by less than the clock's step is no outlier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """How long one call takes. ``spread_frac`` is the samples' robust standard deviation over their median."""

    time_s: float  # median of the samples that were kept
    fastest_s: float  # the fastest sample: what a machine with other work does when left alone for a moment
    spread_frac: float
    num_samples: int  # kept
    num_outliers: int  # dropped
    first_s: float  # the very first call, cold

    def over(self, count: int) -> "Timed":
        """The time of one op, where one call did ``count`` of them."""
        return Timed(
            time_s=self.time_s / count,
            fastest_s=self.fastest_s / count,
            spread_frac=self.spread_frac,
            num_samples=self.num_samples,
            num_outliers=self.num_outliers,
            first_s=self.first_s / count,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """A clock and its smallest step."""

    read: Callable[[], float]
    step_s: float


@cache
def steady_clock() -> Clock:
    """This machine's monotonic clock; its step is the usual difference of two readings in a row, if any."""
    steps: list[float] = []
    while len(steps) < 101:
        before = time.perf_counter()
        while (after := time.perf_counter()) == before:
            pass
        steps.append(after - before)
    return Clock(read=time.perf_counter, step_s=median(steps))


def nothing() -> None:
    """Synchronisation for a device that finishes before the call returns: none."""


def time_call(
    call: Callable[[], Any],
    *,
    synchronise: Callable[[], Any] = nothing,
    budget_s: float = 0.25,
    least_samples: int = 7,
    clock: Clock | None = None,
) -> Timed:
    """The time of one ``call()`` and what it leaves to do; ``synchronise`` waits until the device is idle.

    Waiting for an idle device takes time too: a sample is long beside that, as it is beside the clock's step.
    """
    clock = clock or steady_clock()

    def sample(repeats: int) -> float:
        before = clock.read()
        for _ in range(repeats):
            call()
        synchronise()
        return clock.read() - before

    synchronise()
    first_s = sample(1)
    step_s = max(clock.step_s, min(sample(0) for _ in range(5)))
    return time_samples(sample, step_s=step_s, budget_s=budget_s, least_samples=least_samples, first_s=first_s)


def time_samples(
    sample: Callable[[int], float], *, step_s: float, budget_s: float, least_samples: int, first_s: float = 0.0
) -> Timed:
    """The time of one of the calls that ``sample(repeats)`` makes and times together; ``first_s`` if there was one.

    Samples are taken until the budget is spent, and never fewer than ``least_samples`` unless they are far too slow.
    """
    first_s = first_s or sample(1)
    long_s = max(RESOLVED_RATIO * step_s, budget_s / MAX_SAMPLES)
    repeats, spent_s = _warm_up(sample, long_s, budget_s)
    samples: list[float] = []
    while len(samples) < (least_samples if spent_s < OVERRUN_RATIO * budget_s else MIN_AT_ALL) or spent_s < budget_s:
        took_s = sample(repeats)
        spent_s += took_s
        samples.append(took_s / repeats)
    return summarise(samples, first_s)


def summarise(samples: list[float], first_s: float) -> Timed:
    """The median of the samples, without those that stand apart."""
    middle = median(samples)
    furthest = OUTLIER_RATIO * max(deviation(samples), MIN_SCALE_FRAC * middle)
    is_judged = len(samples) >= MIN_FOR_OUTLIERS
    retained = [s for s in samples if abs(s - middle) <= furthest] if is_judged else samples
    time_s = median(retained)
    return Timed(
        time_s=time_s,
        fastest_s=min(samples),
        spread_frac=deviation(retained) / time_s if time_s > 0 else 0.0,
        num_samples=len(retained),
        num_outliers=len(samples) - len(retained),
        first_s=first_s,
    )


def deviation(samples: list[float]) -> float:
    """A robust standard deviation: by the median distance from the median, or by the quartiles where those are wider.

    A machine that changes between two speeds has most samples at one of them: their median distance may be nothing.
    What a quarter of the samples do is no outlier.
    """
    middle, (low, high) = median(samples), np.quantile(samples, (0.25, 0.75))
    return max(NORMAL * median(abs(s - middle) for s in samples), float(high - low) / NORMAL_QUARTILES)


def _warm_up(sample: Callable[[int], float], long_s: float, budget_s: float) -> tuple[int, float]:
    """How many calls make a sample of ``long_s``, once two in a row agree (or the cap is reached); the time it took."""
    repeats, spent_s, before_s = 1, 0.0, float("inf")
    for _ in range(MAX_WARM_SAMPLES):
        took_s = sample(repeats)
        spent_s += took_s
        while took_s < long_s:
            repeats *= max(2, min(MAX_GROWTH, math.ceil(long_s / max(took_s, long_s / MAX_GROWTH))))
            took_s = sample(repeats)
            spent_s += took_s
        each_s = took_s / repeats
        if abs(each_s - before_s) <= AGREE_FRAC * each_s or spent_s > budget_s:
            break
        before_s = each_s
    return repeats, spent_s
