"""Regret of an autoscaler against the cheapest schedule that knows the future."""

from dataclasses import dataclass

from orrery.fleet.service.hindsight import cheapest, demand_of
from orrery.fleet.service.result import FleetRun

PERIOD_S = 60.0
"""The hindsight schedule knows the demand by the minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Regret:
    """Replica-seconds of a run, and of the cheapest schedule for the same arrivals."""

    paid_s: float
    cheapest_s: float

    @property
    def regret_frac(self) -> float:
        """Cost beyond the cheapest schedule, as a fraction of it; below 0 where the run served less than it."""
        return self.paid_s / self.cheapest_s - 1.0 if self.cheapest_s > 0 else 0.0


def regret_of(run: FleetRun) -> Regret | None:
    """The regret of a run; None where no replica's capacity is known, pools differ in what a replica
    carries, or several regions each have their own demand."""
    setup = run.setup
    deployments = {id(p.deployment) for p in setup.service.pools}
    alike = len({(p.deployment.cluster.device.name, p.deployment.layout) for p in setup.service.pools}) == 1
    if (
        setup.capacity_requests_per_s <= 0.0
        or setup.num_regions > 1
        or not (alike or len(deployments) == 1)
        or setup.service.pools[0].role != "all"
    ):
        return None
    least, most = (sum(getattr(t, name) for t in setup.terms) for name in ("replicas_min", "replicas_max"))
    arrive_s = run.arrive_s[run.arrive_s == run.arrive_s]
    demand = demand_of(arrive_s, setup.capacity_requests_per_s, PERIOD_S, run.end_s, most)
    found = cheapest(demand, PERIOD_S, max(t.cold_start_s for t in setup.terms), least)
    spans_s = sum(max(0.0, min(s.end_s, run.end_s) - s.start_s) for s in run.spans)
    return Regret(paid_s=spans_s, cheapest_s=min(found.total_s, found.total_s * run.end_s / (demand.size * PERIOD_S)))
