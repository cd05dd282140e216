"""How many requests a second a service takes: the highest rate at which its objectives hold and its queue is bounded.

Each probe serves the same requests at another rate, its warm-up left out; the search begins at what the closed form
says that the service can sustain.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from orrery.base.arguments import typed
from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.objectives import request_limits_s
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import Scenario, merged, read_scenario, refuse_foreign
from orrery.scenario.service import service_for
from orrery.scenario.simulate import SimulatedAnswer, answer_of, check_traffic, lacking_memory, warm_up
from orrery.serving.capacity import bisected, closed_form, is_sustained
from orrery.serving.metrics.latencies import latencies
from orrery.serving.metrics.percentiles import PercentileLimit, percentiles_found
from orrery.serving.simulation.service import Service
from orrery.serving.simulation.simulate import simulate as run

PROBE_REQUESTS, ROUNDS = 2000, 8
"""Requests of a probe unless the scenario says: so many, or so many for each place in the batches, to fill them."""

WARMUP_FRAC = 0.1
"""Share of a probe's requests that come first and do not count."""

TOLERANCE = 0.015
"""Largest relative gap between the highest rate that holds and the lowest that does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One rate that was tried."""

    requests_per_s: float
    is_met: bool
    is_sustained: bool  # the queue did not grow to the end
    attained_frac: float | None
    goodput_requests_per_s: float | None
    p99_ttft_s: float
    p99_tpot_s: float
    limited_by: str  # the objective furthest off, or what saturated; empty where all holds


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capacity:
    """The highest rate that holds, the run at it, and all that was tried on the way."""

    requests_per_s: float
    limited_by: str  # at the lowest rate that does not hold
    probes: tuple[Probe, ...]  # by rising rate
    answer: SimulatedAnswer

    @property
    def requests_per_s_per_device(self) -> float:
        """Rate per device."""
        return self.requests_per_s / self.answer.service.num_devices

    def to_json(self) -> dict[str, Any]:
        """The answer of the run at the capacity, and ``capacity``."""
        found = {
            "requests_per_s": self.requests_per_s,
            "requests_per_s_per_device": self.requests_per_s_per_device,
            "limited_by": self.limited_by,
            "probes": self.probes,
        }
        return self.answer.to_json() | {"capacity": to_json(found)}


@dataclass(slots=True, kw_only=True, eq=False)
class _Search:
    """State of one search: its probes so far."""

    scenario: Scenario
    service: Service
    notes: tuple[str, ...]
    on_probe: Callable[[Probe], None]
    probes: list[Probe] = field(default_factory=list[Probe])
    best: SimulatedAnswer | None = None
    last: SimulatedAnswer | None = None
    infeasible: Infeasible | None = None

    def is_met(self, rate_per_s: float) -> bool:
        """Serve the scenario at a rate, and hold the run against its objectives."""
        inputs = read_scenario(self.scenario.written() | {"rate": rate_per_s})
        requests = requests_for(inputs)
        found = run(self.service, requests, seed=inputs.seed or 0)
        if isinstance(found, Infeasible):
            self.infeasible = found
            return False
        answer = answer_of(inputs, self.service, found, (*self.notes, *requests.notes), WARMUP_FRAC)
        probe = _probe(rate_per_s, answer)
        self.probes.append(probe)
        self.on_probe(probe)
        self.last = answer
        if probe.is_met:
            self.best = answer
        return probe.is_met


@typed
def find_capacity(
    scenario: Scenario | None = None,
    /,
    *,
    patience: AbstractContextManager[object] | None = None,
    on_probe: Callable[[Probe], None] = lambda probe: None,
    **settings: Any,
) -> Capacity | InfeasibleAnswer:
    """The highest rate at which enough requests meet the objectives and the queue does not grow without end.

    Without objectives, the highest rate that is sustained. Settings are those of a scenario file; given beside a
    scenario they override it. InfeasibleAnswer where even a trickle of requests misses an objective.
    """
    inputs = merged(scenario, settings)
    for name in ("concurrency", "users"):
        if getattr(inputs, name) is not None:
            raise ScenarioError(f"{name}: a capacity is a rate of arrivals; leave {name} out.")
    check_traffic(inputs)
    refuse_foreign("simulate", settings)
    service, notes = service_for(inputs)
    if infeasible := lacking_memory(service):
        return InfeasibleAnswer(infeasible=infeasible, notes=notes, settings=inputs.written())
    sample = requests_for(inputs, inputs.rate or 1.0)
    with patience or nullcontext():
        warm_up(service)
    started = perf_counter()
    likely, places = closed_form(service, sample)
    sized = _sized(inputs, sample.count, places)
    if inputs.rate is not None:
        notes = (*notes, f"rate: {inputs.rate:g} requests/s is not used; the search finds its own")
    if (sized.num_requests or 0) < ROUNDS * places:
        notes = (
            *notes,
            f"num_requests: {sized.num_requests} do not fill {places:.0f} places in the batches for long; "
            "the capacity may be higher",
        )
    search = _Search(scenario=sized, service=service, notes=notes, on_probe=on_probe)
    best, missed = bisected(search.is_met, likely / 2.0, likely * 1.1, TOLERANCE)
    if not best or search.best is None:
        return replace(_cannot(search), settings=inputs.written())
    probes = tuple(sorted(search.probes, key=lambda p: p.requests_per_s))
    limit = next((p.limited_by for p in probes if p.requests_per_s >= missed * (1 - 1e-9) and not p.is_met), "")
    seconds = (perf_counter() - started) / len(probes)
    return Capacity(
        requests_per_s=best,
        limited_by=limit or "nothing within the rates tried",
        probes=probes,
        answer=replace(search.best, seconds=seconds),
    )


def _sized(scenario: Scenario, count: int, places: float) -> Scenario:
    """The scenario with enough requests to fill the service; a trace of ``count`` is replayed until it has as many."""
    if scenario.num_requests is not None:
        return scenario
    least = count if scenario.trace is not None else PROBE_REQUESTS
    return read_scenario(scenario.written() | {"num_requests": max(least, math.ceil(ROUNDS * places))})


def _probe(rate_per_s: float, answer: SimulatedAnswer) -> Probe:
    figures, found = answer.summary, answer.attained
    keeps_up = is_sustained(answer.simulated)
    limit = "" if keeps_up and found.is_met else found.worst if not found.is_met else figures.saturated.limit
    return Probe(
        requests_per_s=rate_per_s,
        is_met=keeps_up and found.is_met,
        is_sustained=keeps_up,
        attained_frac=found.attained_frac,
        goodput_requests_per_s=figures.goodput.requests_per_s if figures.goodput else None,
        p99_ttft_s=figures.ttft.percentile_s(99.0),
        p99_tpot_s=figures.tpot.percentile_s(99.0),
        limited_by=limit,
    )


def _cannot(search: _Search) -> InfeasibleAnswer:
    """Why even a trickle will not do."""
    last = search.last
    if last is None:
        if search.infeasible is None:
            raise AssertionError("a search ended without a probe")
        return InfeasibleAnswer(infeasible=search.infeasible, notes=search.notes)
    limit = _hardest(last)
    (found,) = percentiles_found(latencies(last.simulated, WARMUP_FRAC), (limit,))
    if not math.isfinite(found.value_s):
        served = last.summary.completed / last.summary.num_requests
        infeasible = Infeasible(
            what="share of the requests that fit into the cache",
            need=limit.share_frac,
            have=served,
            unit="of 1",
            smallest_change="Use more devices, a narrower cache format, or shorter requests.",
        )
        return InfeasibleAnswer(infeasible=infeasible, notes=last.notes)
    infeasible = Infeasible(
        what=f"{limit.metric} of {limit.percent:g} % of the requests, hardly any of them at once",
        need=limit.limit_s,
        have=found.value_s,
        unit="s",
        smallest_change=f"Write {limit.metric}:{math.ceil(found.value_s * 1.01e3)} or more, or use faster devices.",
    )
    return InfeasibleAnswer(infeasible=infeasible, notes=last.notes)


def _hardest(answer: SimulatedAnswer) -> PercentileLimit:
    """The objective that is furthest off, as a limit on a percentile."""
    found, worst = answer.attained, answer.attained.worst
    for one in found.percentiles:
        if one.limit.name == worst:
            return one.limit
    limit_s = request_limits_s(answer.scenario.slo)[worst]
    return PercentileLimit(metric=worst, share_frac=found.needed_frac, limit_s=limit_s)
