"""A service hour by hour in steady state: no request is simulated, each hour is an open loop at its mean rate.

In every hour so many replicas run as its rate needs (the rate over what one sustains within the limits), between the
least and the most. A router that spreads requests evenly keeps more replicas at work than arrivals at random to each
would, so that fewer steps are shared and power is higher; latencies are those of one replica alone. Owned replicas that
do not run draw their idle power; limits on power lower clocks as ``steady_power`` says. What this leaves out: queues
that outlast an hour, bursts within it, cold starts, failures.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from math import ceil, exp, floor

import numpy as np

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible
from orrery.fleet.power.phases import clocked
from orrery.fleet.service.power_places import places_of
from orrery.fleet.service.rate_curve import HOUR_S
from orrery.fleet.service.setup import FleetService
from orrery.fleet.service.steady_power import CappedHour, ReplicaState, capped_hour
from orrery.serving.batching import BALANCES
from orrery.serving.estimate import busy_frac, estimate
from orrery.serving.requests import Floats
from orrery.serving.simulation.rules import ROUTERS
from orrery.serving.workload import Workload

MANY = 500.0
"""Requests in flight beyond which their number hardly varies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """One hour. Latencies are means; TTFT is infinite where more requests come than all replicas sustain."""

    start_s: float
    rate_requests_per_s: float
    num_replicas: float
    ttft_s: float
    tpot_s: float
    power_w: float  # devices
    host_power_w: float
    usd_per_s: float
    used_frac: float  # of the rate that the replicas sustain
    capped: CappedHour | None = None  # None: nothing limits or meters its power


def steady_hours(
    setup: FleetService,
    hourly_requests_per_s: Floats,
    input_tokens: float,
    output_tokens: float,
    running: Floats | None = None,
) -> tuple[Hour, ...]:
    """Return every hour of a service whose first pool's replicas stand for all.

    ``running`` are mean replicas by hour where they are known, such as those of a simulated run.
    """
    state_of = _states(setup, input_tokens, output_tokens)
    least, most = (sum(getattr(t, name) for t in setup.terms) for name in ("replicas_min", "replicas_max"))
    hours: list[Hour] = []
    for k, rate in enumerate(hourly_requests_per_s.tolist()):
        count: float = (
            min(max(ceil(rate / setup.capacity_requests_per_s - 1e-9), least), most) if setup.scaler else least
        )
        if running is not None:
            count = float(running[min(k, running.size - 1)])
        state, capped = state_of(count, round(rate / count, 4) if count else 0.0)
        idle_w = sum(t.idle_power_w for t in setup.terms) / len(setup.terms)
        dealt = _dealt(setup, count)
        both = tuple(zip(dealt, setup.terms, strict=True))
        stand_by = [t.replicas_max - n if t.purchase == "owned" else 0.0 for n, t in both]
        hours.append(
            Hour(
                start_s=k * HOUR_S,
                rate_requests_per_s=rate,
                num_replicas=count,
                ttft_s=state.ttft_s,
                tpot_s=state.tpot_s,
                power_w=count * (state.power_w if state.power_w > 0.0 else idle_w)
                + sum(n * t.idle_power_w for n, t in zip(stand_by, setup.terms, strict=True)),
                host_power_w=sum(
                    (n + more) * t.host_power_w for n, more, t in zip(dealt, stand_by, setup.terms, strict=True)
                ),
                usd_per_s=sum((t.replicas_max if t.is_committed else n) * t.usd_per_s for n, t in both),
                used_frac=state.used_frac,
                capped=capped,
            )
        )
    return tuple(hours)


def _states(
    setup: FleetService, input_tokens: float, output_tokens: float
) -> Callable[[float, float], tuple[ReplicaState, CappedHour | None]]:
    """The mean replica of so many at a rate each, and its hour under the limits on power where there are any."""
    cap = setup.power_cap
    places = places_of(cap, setup.terms) if cap else None
    each_idle_w = np.array([t.idle_power_w for t in setup.terms for _ in range(t.replicas_max)])

    @cache
    def at(count: float, each: float, clock_ratio: float) -> ReplicaState:
        return _at(setup, count, each, input_tokens, output_tokens, clock_ratio)

    @cache
    def found(count: float, each: float) -> tuple[ReplicaState, CappedHour | None]:
        if cap is None or places is None:
            return at(count, each, 1.0), None
        parts = zip(_dealt(setup, count), setup.terms, strict=True)
        running = np.array([min(1.0, max(0.0, n - k)) for n, t in parts for k in range(t.replicas_max)])
        capped = capped_hour(cap, places, running, lambda clock: at(count, each, clock), each_idle_w)
        return capped.replica, capped

    return found


def _dealt(setup: FleetService, count: float) -> list[float]:
    """Replicas of each pool: every minimum, then pools in their order."""
    found = [float(t.replicas_min) for t in setup.terms]
    more = count - sum(found)
    for k, t in enumerate(setup.terms):
        add = min(max(0.0, more), t.replicas_max - found[k])
        found[k] += add
        more -= add
    return found


def _at(
    setup: FleetService, count: float, rate: float, input_tokens: float, output_tokens: float, clock_ratio: float
) -> ReplicaState:
    """One of so many replicas at a rate each and at a part of its clock."""
    if rate <= 0.0:
        return ReplicaState(ttft_s=0.0, tpot_s=0.0, power_w=0.0, used_frac=0.0)
    deployment = setup.service.pools[0].deployment
    if clock_ratio != 1.0:
        device = clocked(deployment.cluster.device, clock_ratio)
        deployment = replace(deployment, cluster=replace(deployment.cluster, device=device))
    workload = Workload(mode="open", input_tokens=input_tokens, output_tokens=output_tokens, request_rate_per_s=rate)
    answer = estimate(deployment, workload)
    if isinstance(answer, Infeasible):
        return _overloaded(deployment, workload)
    idle_w, power_w = setup.terms[0].idle_power_w, answer.power_w
    if BALANCES in ROUTERS.get(setup.service.router).traits:
        ranks = deployment.layout.dp * deployment.layout.pp
        alone_frac = busy_frac(deployment, answer.concurrency, is_open=True)
        together_frac = balanced_frac(answer.concurrency / ranks, count * ranks)
        power_w = idle_w + (power_w - idle_w) * together_frac / alone_frac
    return ReplicaState(ttft_s=answer.ttft_s, tpot_s=answer.tpot_s, power_w=power_w, used_frac=answer.rate_used_frac)


def _overloaded(deployment: Deployment, workload: Workload) -> ReplicaState:
    """A replica to which more requests come than it sustains: its batch is full, and its queue grows without end."""
    full = estimate(deployment, replace(workload, num_requests=max(1, round(workload.request_rate_per_s * HOUR_S))))
    if isinstance(full, Infeasible):
        return ReplicaState(ttft_s=float("inf"), tpot_s=float("inf"), power_w=0.0, used_frac=1.0)
    return ReplicaState(ttft_s=float("inf"), tpot_s=full.tpot_s, power_w=full.power_w, used_frac=1.0)


def balanced_frac(each: float, servers: float) -> float:
    """Share of the time in which one of some servers is at work, where arrivals at random go to one that is free.

    A Poisson number N is in flight, ``each`` a server on average, and min(N, servers) of them work; between whole
    numbers of servers it is interpolated.
    """
    low = max(1, floor(servers))
    part = min(1.0, max(0.0, servers - low))
    return sum(share * _working(each * n, n) / n for n, share in ((low, 1.0 - part), (low + 1, part)) if share > 0.0)


def _working(in_flight: float, servers: int) -> float:
    """E[min(N, servers)] of a Poisson number: the sum of P(N > k) over the servers."""
    if in_flight > MANY:
        return min(in_flight, float(servers))
    chance, below, found = exp(-in_flight), 0.0, 0.0
    for k in range(servers):
        below += chance
        found += max(0.0, 1.0 - below)
        chance *= in_flight / (k + 1)
    return found
