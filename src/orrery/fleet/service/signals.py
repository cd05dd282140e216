"""Signals that an autoscaler reads: one sample a control moment, and what was recommended before."""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from orrery.serving.requests import Floats

LONGEST_WINDOW_S = 3600.0
"""Samples are kept so long; arrivals by the minute are kept for the whole run."""

MINUTE_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The service at one control moment. Counts are over the time since the sample before."""

    now_s: float
    serving: int  # replicas that take requests
    starting: int
    waiting: int  # requests in queues
    running: int  # requests in batches
    arrivals: int
    since_s: float  # length of the time that arrivals and busy time are counted over
    busy_frac: float  # of the serving replicas' time
    kv_frac: float  # of their cache

    @property
    def in_flight(self) -> int:
        """Requests that have come and not ended."""
        return self.waiting + self.running

    @property
    def rate_per_s(self) -> float:
        """Arrivals a second since the sample before."""
        return self.arrivals / self.since_s if self.since_s > 0 else 0.0


@dataclass(slots=True, kw_only=True, eq=False)
class Signals:
    """History of a run as its autoscaler sees it; nothing of the future is in it."""

    replicas_min: int
    replicas_max: int
    cold_start_s: float
    capacity_requests_per_s: float  # requests/s that one replica sustains within the limits; 0: not known
    limits_s: Mapping[str, float]
    recent: Callable[[float], tuple[Floats, Floats]]  # TTFT and TPOT (s) of requests that ended since a time
    past: tuple[Floats, Floats] | None = None  # times and arrivals/s of an earlier period
    samples: deque[Sample] = field(default_factory=deque[Sample])
    recommended: deque[tuple[float, float]] = field(default_factory=deque[tuple[float, float]])
    by_minute: dict[int, int] = field(default_factory=dict[int, int])
    state: dict[str, float] = field(default_factory=dict[str, float])  # what a rule remembers between moments

    def add(self, sample: Sample) -> None:
        """Take a new sample; old ones are forgotten."""
        self.samples.append(sample)
        while self.samples[0].now_s < sample.now_s - LONGEST_WINDOW_S:
            self.samples.popleft()
        minute = int(max(0.0, sample.now_s - 1e-9) // MINUTE_S)
        self.by_minute[minute] = self.by_minute.get(minute, 0) + sample.arrivals

    @property
    def now(self) -> Sample:
        """The newest sample."""
        return self.samples[-1]

    def mean(self, value: Callable[[Sample], float], window_s: float) -> float:
        """Mean of a value over the samples of the last ``window_s`` seconds; the newest one is always among them."""
        found = [value(self.now)]
        for sample in list(self.samples)[-2::-1]:
            if sample.now_s <= self.now.now_s - window_s + 1e-9:
                break
            found.append(value(sample))
        return sum(found) / len(found)

    def remember(self, recommendation: float, window_s: float) -> None:
        """Note a recommendation; those older than ``window_s`` seconds are forgotten."""
        now_s = self.now.now_s
        self.recommended.append((now_s, recommendation))
        while self.recommended[0][0] < now_s - window_s - 1e-9:
            self.recommended.popleft()

    def extreme(self, pick: Callable[[list[float]], float], window_s: float) -> float:
        """The highest or lowest recommendation of the last ``window_s`` seconds."""
        now_s = self.now.now_s
        return pick([r for at_s, r in self.recommended if at_s >= now_s - window_s - 1e-9])

    def rate_before(self, ago_s: float, width_s: float) -> float:
        """Arrivals a second around ``ago_s`` seconds before now; nan where nothing was seen then."""
        at_s = self.now.now_s - ago_s
        first, last = int((at_s - width_s / 2) // MINUTE_S), int((at_s + width_s / 2) // MINUTE_S)
        if first < 0:
            return self._earlier(at_s)
        seen = [self.by_minute.get(m, 0) for m in range(first, last + 1)]
        return sum(seen) / (len(seen) * MINUTE_S)

    def _earlier(self, at_s: float) -> float:
        """The rate of an earlier period, whose end is the start of the run."""
        if self.past is None or not self.past[0].size:
            return math.nan
        times_s, rates_per_s = self.past
        return float(np.interp(at_s, times_s, rates_per_s)) if at_s >= times_s[0] else math.nan
