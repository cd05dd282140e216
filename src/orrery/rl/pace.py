"""How long a step is where generation and training run side by side, with bounded staleness.

A rollout of step n is begun with the weights of step n - K at the oldest, which exist once step n - K - 1 is trained.
With steps of P seconds, of which the trainer works T, that is (K + 1) P - T before the trainer wants the rollouts::

    P = the least P >= T with  latency(P) <= (K + 1) P - T

where latency(P) is how long a batch takes whose like arrive every P seconds and share the engines with it. Three cases
follow. K = 0: nothing shares, so P = G + T with G a batch alone. K = 1 and G <= T: P = T. Large K: the tail of each
batch hides behind the next ones, and P is T or what the engines can write at their best.

Engines that finish what they have begun before they take new weights (no updates in flight) run one batch between two
updates, whatever K: P = max(G, T) for K >= 1. Frameworks that let K batches be in flight, not K + 1, keep the engines
at that: P is no less than a batch takes where a sequence begins as another one ends, K batches at once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.rl.engine import Begun, run
from orrery.rl.job import RlJob
from orrery.rl.rollout import whole_batch
from orrery.serving.simulation.result import TIMELINE, Simulated

MEASURED = 3
"""The last batches of a simulated run, which have as many before them as share the engines with one."""

CLOSE = 0.01
"""Relative width at which the search for the period ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlappedSteps:
    """Steps side by side, without handing weights over."""

    period_s: float
    latency_s: float  # of a batch of rollouts at that pace
    busy_frac: float  # of the engines: time with a step on it


def least_period_s(
    latency_s: Callable[[float], float], training_s: float, staleness: int, alone_s: float, least_s: float = 0.0
) -> float:
    """The least P >= T, and >= ``least_s``, with latency(P) <= (K + 1) P - T; ``alone_s`` is the latency of a batch
    alone, which no period needs more than T beside."""
    low = max(training_s, least_s, (alone_s + training_s) / (staleness + 1))
    high = max(low, alone_s + training_s)

    def is_met(period_s: float) -> bool:
        return latency_s(period_s) <= (staleness + 1) * period_s - training_s + 1e-9 * period_s

    if is_met(low):
        return low
    while high - low > CLOSE * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if is_met(middle) else (middle, high)
    latency_s(high)
    return high


def side_by_side(job: RlJob, training_s: float, alone: Simulated) -> OverlappedSteps | Infeasible:
    """The pace of a job with ``max_staleness`` of 1 or more; ``alone`` is one batch with nothing beside it."""
    alone_s = float(alone.finish_s.max())
    if not job.updates_in_flight:
        period_s = max(alone_s, training_s)
        return OverlappedSteps(period_s=period_s, latency_s=alone_s, busy_frac=_busy_s(alone) / period_s)
    least_s = training_s
    if job.framework.caps_batches_in_flight:
        full_s = _full_period_s(job)
        if isinstance(full_s, Infeasible):
            return full_s
        least_s = max(least_s, min(full_s, alone_s))
    runs: dict[float, tuple[float, float]] = {}

    def latency_s(period_s: float) -> float:
        if period_s not in runs:
            runs[period_s] = _run(job, period_s, alone_s)
        return runs[period_s][0]

    period_s = least_period_s(latency_s, training_s, job.max_staleness, alone_s, least_s)
    latency, busy_frac = runs[period_s]
    return OverlappedSteps(period_s=period_s, latency_s=latency, busy_frac=min(1.0, busy_frac))


def _batches(job: RlJob, count: int) -> tuple[Begun, int]:
    """Join ``count`` batches behind one another; returns them and the number of sequences of each."""
    found = [whole_batch(job, number)[0] for number in range(count)]
    size = found[0].prompt.size
    return Begun(
        input_tokens=np.concatenate([b.input_tokens for b in found]),
        output_tokens=np.concatenate([b.output_tokens for b in found]),
        prompt_tokens=np.concatenate([b.prompt_tokens for b in found]),
        prompt=np.concatenate([b.prompt + i * (size // job.group) for i, b in enumerate(found)]),
    ), size


def _full_period_s(job: RlJob) -> float | Infeasible:
    """Time per batch where K batches are in flight and a sequence begins as another one ends."""
    begun, size = _batches(job, job.max_staleness + 2)
    found = run(job, begun, in_flight=job.max_staleness * size)
    if isinstance(found, Infeasible):
        return found
    ends = np.sort(found.finish_s)
    first, last = ends.size // 4, 3 * ends.size // 4  # without filling and draining
    return size * float(ends[last] - ends[first]) / (last - first)


def _run(job: RlJob, period_s: float, alone_s: float) -> tuple[float, float]:
    """Mean latency of the last batches that come every ``period_s``, and the share of time that engines work."""
    beside = min(job.max_staleness + 1, ceil(alone_s / period_s) + 1)
    count = beside + MEASURED
    begun, size = _batches(job, count)
    found = run(job, begun, np.repeat(np.arange(count, dtype=np.float64) * period_s, size))
    if isinstance(found, Infeasible):
        raise ScenarioError(f"rollouts: {found}")
    ends = found.finish_s.reshape(count, size).max(axis=1)
    latency = (ends - np.arange(count) * period_s)[-MEASURED:]
    steady = (found.timeline_s[:-1] >= period_s) & (found.timeline_s[1:] <= (count - 1) * period_s)
    busy = float(found.timeline[steady, TIMELINE.index("busy_s")].sum())
    span_s = max(1e-12, float(np.diff(found.timeline_s)[steady].sum()) * job.replicas)
    return float(latency.mean()), busy / span_s


def _busy_s(found: Simulated) -> float:
    """Seconds in which the mean machine had a step."""
    return float(found.timeline[:, TIMELINE.index("busy_s")].sum()) / max(1, found.num_machines)
