"""A pool that only decodes: requests arrive with their cache and first token, and leave after the last one.

    n sequences, one token each a step of s(n) seconds      life = (outputs - 1) x s(n)      rate = n / life

A closed loop keeps n as high as its requests, the cache and the engine allow; whoever waits is let in when another one
leaves. A batch that is too large goes in turns. Arrivals at a rate fill as many sequences as are alive at once, n =
rate x life, and each comes half a step before the next one begins.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory
from orrery.serving.clock import Ticks, steps_of, tick
from orrery.serving.steady import batch_limit
from orrery.serving.workload import Workload

HALVINGS = 40
"""Halvings of the interval in which the number of sequences lies that arrivals keep alive."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Decoding:
    """Steady decoding of a deployment of ``dp`` replicas."""

    sequences: float  # in the batch of one replica
    step_s: float  # from one token of a sequence to its next
    first_s: float  # from the cache's arrival to the first token made here
    queue_s: float  # of that, waiting for a slot
    requests_per_s: float  # of all replicas
    highest_requests_per_s: float
    ticks: Ticks  # one step


def decoding(deployment: Deployment, memory: Memory, workload: Workload) -> Decoding | Infeasible:
    """The steady state of the workload; Infeasible where more arrives than leaves."""
    steps = workload.output_tokens - 1.0
    if steps <= 0.0:
        raise ScenarioError("output_tokens: a decode pool makes none of one token; write 2 or more.")
    replicas, limit = deployment.layout.dp, batch_limit(deployment, memory, workload.input_tokens, steps + 1.0)
    context = workload.input_tokens + workload.output_tokens / 2.0

    def step_s(sequences: float) -> float:
        return float(_tick(deployment, sequences, context).time_s[0])

    highest = limit / (steps * step_s(limit)) * replicas
    is_open = workload.mode == "open"
    if is_open and workload.request_rate_per_s >= highest:
        return _too_many(deployment, workload.request_rate_per_s, highest)
    alive = max(1.0, (workload.batch_size or workload.concurrency) / replicas)
    if is_open:
        alive = max(1.0, _alive(lambda n: steps * step_s(n), workload.request_rate_per_s / replicas, limit))
    turns = ceil(alive / limit) if workload.mode == "static" else 1
    slots = min(alive / turns, limit)
    ticks = _tick(deployment, slots, context)
    each_s = float(ticks.time_s[0])
    rate = workload.request_rate_per_s if is_open else slots / (steps * each_s) * replicas
    waiting = 0.5 * (turns - 1) if workload.mode == "static" else (alive - slots) / slots
    queue_s = waiting * steps * each_s
    return Decoding(
        sequences=slots,
        step_s=each_s,
        first_s=queue_s + each_s * (1.5 if is_open else 1.0),
        queue_s=queue_s,
        requests_per_s=rate,
        highest_requests_per_s=highest,
        ticks=ticks,
    )


def _alive(life_s: Callable[[float], float], rate_per_s: float, limit: float) -> float:
    """Sequences that are alive at once: as many leave as arrive."""
    low, high = 0.0, limit
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if middle < rate_per_s * life_s(middle) else (low, middle)
    return high


def _tick(deployment: Deployment, sequences: float, context: float) -> Ticks:
    """One step; a pipeline has as many batches in flight as stages."""
    each = max(sequences / deployment.layout.pp, 1.0)
    return tick(deployment, steps_of(0.0, 0.0, 0.0, np.array([each]), context))


def _too_many(deployment: Deployment, rate_per_s: float, highest: float) -> Infeasible:
    return Infeasible(
        what=f"Arrivals at a decode pool of {deployment.model.name} on {deployment.cluster.device.name}",
        need=rate_per_s,
        have=highest,
        unit="requests/s",
        smallest_change=f"Run {ceil(rate_per_s / highest * 1.0001)} replicas of it, or lower the rate.",
    )
