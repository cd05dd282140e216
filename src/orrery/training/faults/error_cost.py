"""Lost share of a job's time by kind of fault and way of detection: in closed form, and fault by fault.

While a job runs, kind k strikes at rate devices / MTBF_k. Each strike loses the work since the last save, which for
saves every t is 1/r - t / (e^(rt) - 1) in the mean (r: all kinds together), stands for detection, diagnosis and
restart, and a straggler lets the job run at 1 / slowdown of its pace until it is found after d, or until the next
fault takes it out: (1 - e^(-rd)) / r in the mean, with a restart of its own in e^(-rd) of the cases. Time that runs and
comes to nothing is exposed to faults as well, hence the quotient in ``running``.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.engine.streams import stream
from orrery.training.faults.detection import FaultKind, Floats, Response
from orrery.training.faults.model import check_not_negative, check_positive


class Detector(Protocol):
    """A way of finding faults."""

    def response(self, kind: FaultKind) -> Response:
        """Delay of that kind until the restart."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job that saves every ``interval_s`` of work and takes ``restart_s`` to start again."""

    num_devices: int
    interval_s: float
    restart_s: float

    def __post_init__(self) -> None:
        check_positive(self, "num_devices", "interval_s")
        check_not_negative(self, "restart_s")


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorCost:
    """Shares of a job's time, which add up to one."""

    useful_frac: float
    lost_frac: float  # work since the last save
    slow_frac: float  # what a straggler holds back while it is not known
    detection_frac: float
    diagnosis_frac: float
    restart_frac: float
    num_failures_per_s: float  # of the job's time

    @property
    def overhead_frac(self) -> float:
        """All that errors take."""
        return 1.0 - self.useful_frac


def error_cost(job: Job, kinds: Sequence[FaultKind], detector: Detector) -> ErrorCost:
    """In the mean over a long time."""
    rates = [job.num_devices / kind.device_mtbf_s for kind in kinds]
    total = sum(rates)
    lost_s = mean_lost_s(total, job.interval_s)
    found = [detector.response(kind) for kind in kinds]
    alone = [1.0 if k.stops else math.exp(-total * r.detection_s) for k, r in zip(kinds, found, strict=True)]
    slow_s = [
        0.0 if kind.stops else (1.0 - own) / total * (1.0 - 1.0 / kind.slowdown_ratio)
        for kind, own in zip(kinds, alone, strict=True)
    ]
    wasted = sum(rate * (own * lost_s + slow) for rate, own, slow in zip(rates, alone, slow_s, strict=True))
    if wasted >= 1.0:
        raise OutOfRange(f"error_cost: failures undo work as fast as it is done ({wasted:.2g}); save more often.")
    running = 1.0 / (1.0 - wasted)
    parts = [0.0] * 5
    for kind, rate, r, own, slow in zip(kinds, rates, found, alone, slow_s, strict=True):
        stands_s = r.detection_s if kind.stops else 0.0
        each_s = (own * lost_s, slow, stands_s, own * r.diagnosis_s, own * job.restart_s)
        parts = [p + running * rate * s for p, s in zip(parts, each_s, strict=True)]
    return _shares(1.0, parts, running * total)


def mean_lost_s(failures_per_s: float, interval_s: float) -> float:
    """Mean work since the last save when a failure strikes: half the interval, and less where failures are frequent."""
    load = failures_per_s * interval_s
    if load < 1e-6:
        return interval_s / 2.0
    return 1.0 / failures_per_s - interval_s * math.exp(-load) / -math.expm1(-load)


def _shares(useful_s: float, parts_s: Sequence[float], failures: float) -> ErrorCost:
    time_s = useful_s + sum(parts_s)
    lost, slow, detection, diagnosis, restart = (p / time_s for p in parts_s)
    return ErrorCost(
        useful_frac=useful_s / time_s,
        lost_frac=lost,
        slow_frac=slow,
        detection_frac=detection,
        diagnosis_frac=diagnosis,
        restart_frac=restart,
        num_failures_per_s=failures / time_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultEvent:
    """One fault as drawn: its kind, its device, and how long the job ran since the one before."""

    kind: FaultKind
    device: int
    after_s: float


def draw_strikes(job: Job, kinds: Sequence[FaultKind], count: int, seed: int = 0) -> list[FaultEvent]:
    """``count`` faults over all devices of a running job, exponential, in order."""
    draws = stream(seed, "training/strikes")
    rates = np.array([job.num_devices / kind.device_mtbf_s for kind in kinds])
    bounds: Floats = np.cumsum(rates) / rates.sum()
    chosen = [int(k) for k in np.searchsorted(bounds[:-1], draws.random(count), side="right")]
    devices = draws.integers(0, job.num_devices, count)
    after_s = draws.exponential(1.0 / rates.sum(), count)
    return [
        FaultEvent(kind=kinds[k], device=d, after_s=s)
        for k, d, s in zip(chosen, devices.tolist(), after_s.tolist(), strict=True)
    ]


def play(job: Job, strikes: Sequence[FaultEvent], detector: Detector) -> ErrorCost:
    """Strike after strike: what the job keeps, and where the time goes.

    A straggler that is not yet found when the next fault strikes goes out with it: that fault's restart is the same.
    """
    kept_s = since_s = 0.0
    parts = [0.0] * 5
    slow: FaultEvent | None = None  # a straggler that is not yet found
    for strike in strikes:
        left_s = strike.after_s
        if slow is not None:
            pace, found = 1.0 / slow.kind.slowdown_ratio, detector.response(slow.kind)
            spent_s = min(left_s, found.detection_s)
            since_s, left_s = since_s + spent_s * pace, left_s - spent_s
            parts[1] += spent_s * (1.0 - pace)
            if found.detection_s <= strike.after_s:
                kept_s, since_s = _back(job, kept_s, since_s, parts, found)
        since_s += left_s
        slow = None if strike.kind.stops else strike
        if slow is None:
            found = detector.response(strike.kind)
            parts[2] += found.detection_s
            kept_s, since_s = _back(job, kept_s, since_s, parts, found)
    return _shares(kept_s + since_s, parts, len(strikes))


def _back(job: Job, kept_s: float, since_s: float, parts: list[float], found: Response) -> tuple[float, float]:
    """To the last save; books diagnosis and restart."""
    lost_s = since_s % job.interval_s
    parts[0] += lost_s
    parts[3] += found.diagnosis_s
    parts[4] += job.restart_s
    return kept_s + since_s - lost_s, 0.0
