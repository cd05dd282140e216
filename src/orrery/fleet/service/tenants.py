"""Tenants of a service: who sends which request, at what priority, and within what budget.

A budget is a token bucket at the gateway: it fills at the tenant's rate up to its burst, and a request that finds less
than one token in it is shed.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.requests import Floats, Ints, Requests

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """One client of the service: a part of the traffic. Lower priorities go first where the queue knows them."""

    name: str
    share_frac: float
    priority_rank: float = 0.0
    budget_requests_per_s: float = float("inf")  # requests/s that the gateway lets through
    burst_requests: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Split:
    """Traffic after the gateway: the requests that go on, whose they are, and which of all were shed."""

    requests: Requests
    tenant: Ints  # of every request that came
    shed: Flags  # of every request that came
    shed_s: Floats  # when those came


def split(requests: Requests, tenants: tuple[Tenant, ...], seed: int) -> Split:
    """Deal requests to tenants at random by their shares, and shed what is beyond a budget."""
    total = sum(t.share_frac for t in tenants)
    if abs(total - 1.0) > 1e-6:
        raise ScenarioError(f"tenants: their shares add up to {total:g}; write shares that add up to 1.")
    edges = np.cumsum([t.share_frac for t in tenants])
    drawn = stream(seed, "tenants").random(requests.count)
    whose = np.minimum(np.searchsorted(edges, drawn, side="right"), len(tenants) - 1).astype(np.int64)
    priority = np.array([t.priority_rank for t in tenants])[whose]
    shed = np.zeros(requests.count, dtype=np.bool_)
    for k, t in enumerate(tenants):
        if np.isfinite(t.budget_requests_per_s):
            if requests.after.size:
                raise ScenarioError(
                    f"tenant {t.name}: a budget needs independent requests; these wait for one another."
                )
            mine = np.flatnonzero(whose == k)
            shed[mine] = beyond(requests.arrive_s[mine], t.budget_requests_per_s, t.burst_requests)
    found = replace(requests, client=whose, priority=priority)
    return Split(
        requests=without(found, shed) if shed.any() else found, tenant=whose, shed=shed, shed_s=requests.arrive_s[shed]
    )


class Bucket:
    """Tokens of a budget, full at the start."""

    __slots__ = ("_burst_requests", "_last_s", "_rate_per_s", "_tokens")

    def __init__(self, rate_per_s: float, burst_requests: float) -> None:
        self._rate_per_s, self._burst_requests = rate_per_s, burst_requests
        self._tokens, self._last_s = burst_requests, 0.0

    def lets_through(self, at_s: float) -> bool:
        """Whether a request finds a token, which it then takes; times may not go back."""
        self._tokens = min(self._burst_requests, self._tokens + (at_s - self._last_s) * self._rate_per_s)
        self._last_s = at_s
        if self._tokens < 1.0 - 1e-9:
            return False
        self._tokens -= 1.0
        return True


def beyond(arrive_s: Floats, rate_per_s: float, burst_requests: float) -> Flags:
    """Which arrivals find less than one token in a bucket that is full at the start."""
    bucket = Bucket(rate_per_s, burst_requests)
    return np.array([not bucket.lets_through(at_s) for at_s in arrive_s.tolist()], dtype=np.bool_)


def without(requests: Requests, left_out: Flags) -> Requests:
    """Independent requests but for some."""
    keep = np.flatnonzero(~left_out)
    lengths = np.diff(requests.prefix_start)[keep] if requests.prefix_start.size else np.zeros(0, dtype=np.int64)
    parts = [
        requests.prefix_ids[requests.prefix_start[i] : requests.prefix_start[i + 1]]
        for i in (keep.tolist() if requests.prefix_start.size else ())
    ]
    return replace(
        requests,
        arrive_s=requests.arrive_s[keep],
        input_tokens=requests.input_tokens[keep],
        output_tokens=requests.output_tokens[keep],
        session=_some(requests.session, keep),
        model=_some(requests.model, keep),
        client=_some(requests.client, keep),
        adapter=_some(requests.adapter, keep),
        origin=_some(requests.origin, keep),
        priority=requests.priority[keep] if requests.priority.size else requests.priority,
        prefix_start=np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
        if requests.prefix_start.size
        else requests.prefix_start,
        prefix_ids=np.concatenate(parts) if parts else requests.prefix_ids,
    )


def _some(values: Ints, keep: Ints) -> Ints:
    return values[keep] if values.size else values
