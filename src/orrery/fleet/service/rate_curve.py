"""The rate of requests over days and weeks, and arrivals that follow it.

A curve is the rate at each minute as a part of its mean. Arrivals of any process at a steady rate become arrivals along
the curve when their clock is bent: with L(t) the integral of the curve, an arrival at u of the steady clock comes at
L^-1(u); a Poisson process stays one, of the rate that the curve says [cinlar-1975].
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.requests import Floats

MINUTE_S, HOUR_S, DAY_S, WEEK_S = 60.0, 3600.0, 86_400.0, 604_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RateCurve:
    """A law of the rate over a week. Hours count from 0 at midnight of the first day, which is a Monday.

    ``hourly`` are parts of the mean for each hour of a day (24 of them) or of a week (168); without them the day is a
    sinusoid from its quietest hour to its busiest, ``peak_to_trough_ratio`` apart. On Saturday and Sunday the rate is
    ``weekend_frac`` of a weekday's. Bursts come at random, so many a day, and multiply the rate.
    """

    peak_to_trough_ratio: float = 1.0
    peak_s: float = 14.0 * HOUR_S
    hourly_ratio: tuple[float, ...] = ()
    weekend_frac: float = 1.0
    bursts_per_day: float = 0.0
    burst_ratio: float = 3.0
    burst_length_s: float = 300.0
    start_s: float = 0.0  # of the week: where the run starts

    def __post_init__(self) -> None:
        if self.hourly_ratio and len(self.hourly_ratio) not in (24, 168):
            raise ScenarioError(f"rate_curve: got {len(self.hourly_ratio)} hours; write 24 (a day) or 168 (a week).")
        if self.hourly_ratio and (min(self.hourly_ratio) < 0.0 or max(self.hourly_ratio) <= 0.0):
            raise ScenarioError("rate_curve: hours are parts of the mean rate; write numbers from 0, one above 0.")
        if not self.peak_to_trough_ratio >= 1.0:
            raise ScenarioError(f"peak_to_trough = {self.peak_to_trough_ratio:g}; write a number from 1.")

    def weekly(self) -> Floats:
        """The rate at each minute of a week, of mean 1, without bursts."""
        hours = np.arange(0.0, 168.0, MINUTE_S / HOUR_S) + 0.5 * MINUTE_S / HOUR_S
        if self.hourly_ratio:
            found = np.resize(np.repeat(np.array(self.hourly_ratio), 60), hours.size)
        else:
            depth = (self.peak_to_trough_ratio - 1.0) / (self.peak_to_trough_ratio + 1.0)
            found = 1.0 + depth * np.cos(2.0 * np.pi * (hours - self.peak_s / HOUR_S) / 24.0)
        found = found * np.where(hours % 168.0 >= 120.0, self.weekend_frac, 1.0)
        mean = found.mean()
        if not mean > 0.0:
            raise ScenarioError("rate_curve: nothing comes in a whole week; write an hour or a weekday above 0.")
        return found / mean

    def along(self, length_s: float, seed: int) -> Floats:
        """The rate at each minute of a run of that length, as a part of the mean rate; bursts come on top."""
        minutes = max(1, int(np.ceil(length_s / MINUTE_S)))
        first = int(self.start_s / MINUTE_S)
        found = np.take(self.weekly(), np.arange(first, first + minutes), mode="wrap")
        self.burst(found, length_s, seed)
        return found

    def burst(self, found: Floats, length_s: float, seed: int) -> None:
        """Multiply the rate at each minute (the last axis) in bursts that come at random."""
        if self.bursts_per_day > 0.0:
            draws, at_s = stream(seed, "bursts"), 0.0
            while (at_s := at_s + draws.standard_exponential() * DAY_S / self.bursts_per_day) < length_s:
                start = int(at_s / MINUTE_S)
                end = start + max(1, round(self.burst_length_s / MINUTE_S))
                found[..., start:end] *= self.burst_ratio


def bent(steady_s: Floats, curve: Floats) -> Floats:
    """Arrivals along a curve of minutes, from those of the steady clock; beyond its end the rate is the mean."""
    passed_s = np.concatenate((np.zeros(1), np.cumsum(curve) * MINUTE_S))
    edges_s = np.arange(passed_s.size) * MINUTE_S
    inside = np.interp(steady_s, passed_s, edges_s)
    return np.where(steady_s > passed_s[-1], edges_s[-1] + (steady_s - passed_s[-1]), inside)


def steady_length_s(curve: Floats) -> float:
    """How long the steady clock runs while the curve's does."""
    return float(curve.sum() * MINUTE_S)


def hourly_means(curve: Floats) -> Floats:
    """The mean of each hour of a curve of minutes."""
    edges = [*range(0, curve.size, 60), curve.size]
    return np.array([curve[a:b].mean() for a, b in pairwise(edges)])
