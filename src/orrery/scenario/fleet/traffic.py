"""The requests of a fleet: those of its scenario, for days, along its curve, dealt to its tenants."""

import math
from dataclasses import dataclass, replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.catalog.traces import load_trace
from orrery.fleet.service.rate_curve import DAY_S, bent, steady_length_s
from orrery.fleet.service.tenants import Split, Tenant, split, without
from orrery.scenario.fleet.origins import has_curve, origin_curves, with_origins
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import Scenario, merged
from orrery.serving.requests import Floats, Requests

MAX_REQUESTS = 60_000_000
"""Requests of one run: a week at 100 a second takes minutes."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetTraffic:
    """Traffic behind the gateway; ``length_s`` is 0 where only the requests state the length of the run."""

    split: Split
    length_s: float
    curve: Floats  # the rate at each minute as a part of its mean; empty: steady
    notes: tuple[str, ...]


def traffic_for(inputs: FleetInputs) -> FleetTraffic:
    """The requests of a fleet."""
    top, scenario = inputs.top, inputs.scenario
    is_curved, length_s = has_curve(inputs), (top.days or 0.0) * DAY_S
    if is_curved and not length_s:
        raise ScenarioError("rate_curve: a curve needs a length; write days = 1 beside it.")
    curves = origin_curves(inputs, length_s, scenario.seed or 0)
    curve = curves.sum(axis=0) if is_curved else np.zeros(0)
    steady_s = steady_length_s(curve) if curve.size else length_s
    requests, notes = _for_length(scenario, steady_s) if length_s else (requests_for(scenario), ())
    if curve.size:
        if requests.after.size:
            first = requests.after < 0
            at_s = requests.arrive_s.copy()
            at_s[first] = bent(at_s[first], curve)
            requests = replace(requests, arrive_s=at_s)
        else:
            requests = replace(requests, arrive_s=bent(requests.arrive_s, curve))
    if length_s and not requests.after.size and (late := requests.arrive_s >= length_s).any():
        requests = without(requests, late)
    if not requests.count:
        raise ScenarioError("rate: no request comes in that time; write a higher rate or more days.")
    requests, more = with_origins(inputs, requests, curves)
    tenants = tenants_of(inputs)
    dealt = (
        split(requests, tenants, scenario.seed or 0)
        if tenants
        else Split(
            requests=requests,
            tenant=np.zeros(0, dtype=np.int64),
            shed=np.zeros(requests.count, dtype=np.bool_),
            shed_s=np.zeros(0),
        )
    )
    return FleetTraffic(split=dealt, length_s=length_s, curve=curve, notes=(*notes, *more, *requests.notes))


def _for_length(scenario: Scenario, length_s: float) -> tuple[Requests, tuple[str, ...]]:
    """Enough requests at the scenario's mean rate for a steady clock of that length."""
    if scenario.num_requests is not None:
        raise ScenarioError("num_requests: days already say how many come; leave one of both out.")
    rate, notes = mean_rate(scenario)
    if scenario.trace is not None:
        size = load_trace(scenario.trace, scenario.seed or 0).arrival_s.size
        if (laps := rate * length_s / size) > 1.0:
            notes = (*notes, f"trace {scenario.trace}: its {size:,} requests are repeated {laps:.3g} times")
    mean = rate * length_s
    if mean > MAX_REQUESTS:
        raise ScenarioError(f"{mean:,.0f} requests are more than one run takes ({MAX_REQUESTS:,}); write fewer days.")
    follows = scenario.turns is not None or scenario.calls is not None
    count = max(1, round(mean)) if follows or scenario.trace else math.ceil(mean + 6.0 * math.sqrt(mean) + 10.0)
    return requests_for(merged(scenario, {"num_requests": count})), notes


def mean_rate(scenario: Scenario) -> tuple[float, tuple[str, ...]]:
    """The mean rate of a scenario's requests: its own, or its trace's."""
    rate = scenario.rate
    if scenario.trace is not None:
        trace = load_trace(scenario.trace, scenario.seed or 0)
        size, lasts_s = trace.arrival_s.size, float(trace.arrival_s[-1])
        own = (size - 1) / lasts_s if lasts_s > 0 and size > 1 else None
        if rate is None and own is None:
            raise ScenarioError(f"trace {trace.name}: has no arrival times; write rate = 4 beside it.")
        rate = rate or own
    if rate is None:
        raise ScenarioError("rate: is missing; write the mean rate, such as rate = 4, or a trace.")
    return rate, ()


def tenants_of(inputs: FleetInputs) -> tuple[Tenant, ...]:
    """The tenants as they were written; shares that are missing are equal parts of the rest."""
    blocks = inputs.tenants
    if not blocks:
        return ()
    given = sum(b.share for b in blocks if b.share is not None)
    blank = sum(b.share is None for b in blocks)
    rest = (1.0 - given) / blank if blank else 0.0
    names = [b.name or f"tenant {k}" for k, b in enumerate(blocks, start=1)]
    if len(set(names)) < len(names):
        raise ScenarioError(f"tenant: {max(names, key=names.count)!r} is there twice; give each a name of its own.")
    if blank and rest <= 0.0:
        raise ScenarioError(f"tenants: their shares add up to {given:g} already; nothing is left for the others.")
    return tuple(
        Tenant(
            name=name,
            share_frac=rest if b.share is None else b.share,
            priority_rank=b.priority or 0.0,
            budget_requests_per_s=math.inf if b.budget is None else b.budget,
            burst_requests=10.0 if b.burst is None else max(1.0, b.burst),
        )
        for name, b in zip(names, blocks, strict=True)
    )
