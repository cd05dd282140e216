"""Regret of an autoscaler against the cheapest schedule that knows the future."""

from dataclasses import dataclass

import numpy as np

from orrery.fleet.service.hindsight import cheapest, demand_of
from orrery.fleet.service.result import FleetRun
from orrery.serving.requests import Floats

PERIOD_S = 60.0
"""The hindsight schedule knows the demand by the minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Replica-seconds of a run, and of the cheapest schedule for the same arrivals: in every region for those that were
    sent there, so that it is the autoscalers' and not the router's."""

    paid_s: float
    cheapest_s: float

    @property
    def regret_frac(self) -> float:
        """Cost beyond the cheapest schedule, as a fraction of it; below 0 where the run served less than it."""
        return self.paid_s / self.cheapest_s - 1.0 if self.cheapest_s > 0 else 0.0


def regret_of(run: FleetRun) -> Regret | None:
    """The regret of a run; None where no replica's capacity is known, or pools of a region differ in what a replica
    carries."""
    setup = run.setup
    regions = range(setup.num_regions)
    if setup.service.pools[0].role != "all" or not all(_is_known(run, region) for region in regions):
        return None
    found_s = sum(_cheapest_s(run, region) for region in regions)
    spans_s = sum(max(0.0, min(s.end_s, run.end_s) - s.start_s) for s in run.spans)
    return Regret(paid_s=spans_s, cheapest_s=found_s)


def _is_known(run: FleetRun, region: int) -> bool:
    """Whether every replica of a region carries as much, and how much is known."""
    setup = run.setup
    own = zip(setup.service.own_pools, setup.region_numbers, strict=True)
    pools = [pool.deployment for pool, at in own if at == region]
    alike = len({(d.cluster.device.name, d.layout) for d in pools}) == 1
    return setup.capacities(region)[0] > 0.0 and (alike or len({id(d) for d in pools}) == 1)


def _cheapest_s(run: FleetRun, region: int) -> float:
    """Replica-seconds of the cheapest schedule of a region for the requests that were sent there."""
    setup = run.setup
    mine = [t for t, at in zip(setup.terms, setup.region_numbers, strict=True) if at == region]
    least, most = (sum(getattr(t, name) for t in mine) for name in ("replicas_min", "replicas_max"))
    came = np.isfinite(run.arrive_s)
    if setup.regions is not None:
        came = came & (run.outcome.region == region)
    arrive_s: Floats = run.arrive_s[came]
    demand = demand_of(arrive_s, setup.capacities(region)[0], PERIOD_S, run.end_s, most)
    total_s = cheapest(demand, PERIOD_S, max(t.cold_start_s for t in mine), least).total_s
    return min(total_s, total_s * run.end_s / (demand.size * PERIOD_S))
