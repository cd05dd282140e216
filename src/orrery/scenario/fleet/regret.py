"""Regret of an autoscaler against the cheapest schedule that knows the future."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from orrery.fleet.service.hindsight import cheapest, demand_of
from orrery.fleet.service.result import FleetRun
from orrery.serving.requests import Floats

PERIOD_S = 60.0
"""The hindsight schedule knows the demand by the minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Replica-seconds of a run, and of the cheapest schedule for the same arrivals: in every region for those that were
    sent there, so that it is the autoscalers' and not the router's. Pools for prompts and for answers, which are scaled
    apart, have such a schedule each (``phases``)."""

    paid_s: float
    cheapest_s: float
    phases: Mapping[str, "Regret"] = field(default_factory=dict[str, "Regret"])

    @property
    def regret_frac(self) -> float:
        """Cost beyond the cheapest schedule, as a fraction of it; below 0 where the run served less than it."""
        return self.paid_s / self.cheapest_s - 1.0 if self.cheapest_s > 0 else 0.0

    def to_json(self) -> dict[str, Any]:
        """The regret as plain data."""
        each = {name: phase.to_json() for name, phase in self.phases.items()}
        own = {"paid_s": self.paid_s, "cheapest_s": self.cheapest_s, "regret_frac": self.regret_frac}
        return {**own, **({"phases": each} if each else {})}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Scaled:
    """Pools of one role in one region, which one autoscaler scales, and what a replica of them carries."""

    run: FleetRun
    region: int
    pools: tuple[int, ...]
    capacity_requests_per_s: float

    @property
    def is_known(self) -> bool:
        """Whether every replica carries as much, and how much is known."""
        own = self.run.setup.service.own_pools
        deployments = [own[k].deployment for k in self.pools]
        alike = len({(d.cluster.device.name, d.layout) for d in deployments}) == 1
        return self.capacity_requests_per_s > 0.0 and (alike or len({id(d) for d in deployments}) == 1)

    @property
    def paid_s(self) -> float:
        """Replica-seconds that ran."""
        end_s = self.run.end_s
        return sum(max(0.0, min(s.end_s, end_s) - s.start_s) for s in self.run.spans if s.pool in self.pools)

    @property
    def cheapest_s(self) -> float:
        """Replica-seconds of the cheapest schedule for the requests that were sent to the region."""
        run, mine = self.run, [self.run.setup.terms[k] for k in self.pools]
        least, most = (sum(getattr(t, name) for t in mine) for name in ("replicas_min", "replicas_max"))
        came = np.isfinite(run.arrive_s)
        if run.setup.regions is not None:
            came = came & (run.outcome.region == self.region)
        arrive_s: Floats = run.arrive_s[came]
        demand = demand_of(arrive_s, self.capacity_requests_per_s, PERIOD_S, run.end_s, most)
        total_s = cheapest(demand, PERIOD_S, max(t.cold_start_s for t in mine), least).total_s
        return min(total_s, total_s * run.end_s / (demand.size * PERIOD_S))


def regret_of(run: FleetRun) -> Regret | None:
    """The regret of a run; None where no replica's capacity is known, or pools of a region differ in what a replica
    carries."""
    phases = ("prefill", "decode") if run.setup.has_prefill else ("both",)
    scaled = {phase: [_scaled(run, phase, region) for region in range(run.setup.num_regions)] for phase in phases}
    if not all(one.is_known for found in scaled.values() for one in found):
        return None
    each = {
        phase: Regret(paid_s=sum(one.paid_s for one in found), cheapest_s=sum(one.cheapest_s for one in found))
        for phase, found in scaled.items()
    }
    return Regret(
        paid_s=sum(one.paid_s for one in each.values()),
        cheapest_s=sum(one.cheapest_s for one in each.values()),
        phases=each if len(each) > 1 else {},
    )


def _scaled(run: FleetRun, phase: str, region: int) -> _Scaled:
    """The pools of a phase in a region."""
    setup, is_prefill = run.setup, phase == "prefill"
    both = zip(setup.service.own_pools, setup.region_numbers, strict=True)
    pools = tuple(k for k, (p, at) in enumerate(both) if at == region and (p.role == "prompts") == is_prefill)
    return _Scaled(
        run=run, region=region, pools=pools, capacity_requests_per_s=setup.capacities(region)[1 if is_prefill else 0]
    )
