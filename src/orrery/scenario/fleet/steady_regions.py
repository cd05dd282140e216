"""Steady hours of a fleet in regions: each hour's requests are a flow, and each region is a service of its own."""

from dataclasses import dataclass, fields, replace

import numpy as np

from orrery.fleet.regions.fluid import flows
from orrery.fleet.regions.region_map import RegionMap
from orrery.fleet.service.rate_curve import HOUR_S
from orrery.fleet.service.setup import FleetService
from orrery.fleet.service.steady import Hour, steady_hours
from orrery.fleet.service.steady_power import CappedHour, ReplicaState
from orrery.scenario.fleet.by_hour import ByHour, Clock, steady_by_hour, together
from orrery.serving.requests import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionalHours:
    """Hours of every region, of all together, and the flows between origins and regions."""

    whole: tuple[Hour, ...]
    by_region: dict[str, tuple[Hour, ...]]
    flow_requests_per_s: Floats  # (hours, origins, regions)

    def elsewhere_frac(self, nearest: np.ndarray) -> float:
        """Share of the requests that are not served in their origin's nearest region."""
        total = float(self.flow_requests_per_s.sum())
        near = sum(float(self.flow_requests_per_s[:, o, r].sum()) for o, r in enumerate(nearest.tolist()))
        return 1.0 - near / total if total > 0.0 else 0.0


def regional_hours(
    setup: FleetService,
    found: RegionMap,
    rates_per_s: Floats,
    means: tuple[float, float],
    running: Floats | None,
) -> RegionalHours:
    """Every hour of every region; ``rates_per_s`` by origin and hour, ``running`` replicas by region and hour."""
    parts = [region_setup(setup, found, k) for k in range(len(found.regions))]
    most = np.array([sum(t.replicas_max for t in p.terms) for p in parts], dtype=np.float64)
    table = np.zeros((rates_per_s.shape[1], *found.allowed.shape))
    for hour in range(table.shape[0]):
        count = most if running is None else running[:, min(hour, running.shape[1] - 1)]
        capacity = np.maximum(count, 1e-9) * found.served.capacity_requests_per_s
        costs = found.costs(hour * HOUR_S)
        full_ratio = costs.full_requests / np.maximum(found.served.capacity_requests, 1e-9)
        table[hour] = flows(costs, rates_per_s[:, hour], full_ratio * capacity, capacity)
    by_region = {
        region.name: steady_hours(parts[k], table[:, :, k].sum(axis=1), *means, None if running is None else running[k])
        for k, region in enumerate(found.regions)
    }
    ways_s = found.reach_s + found.back_s
    whole = tuple(
        _together([hours[k] for hours in by_region.values()], float((table[k] * ways_s).sum()))
        for k in range(table.shape[0])
    )
    return RegionalHours(whole=whole, by_region=by_region, flow_requests_per_s=table)


def region_setup(setup: FleetService, found: RegionMap, region: int) -> FleetService:
    """One region's pools as a service of their own."""
    mine = [k for k, at in enumerate(setup.region_numbers) if at == region]
    return replace(
        setup,
        service=replace(setup.service, pools=tuple(setup.service.pools[k] for k in mine)),
        terms=tuple(replace(setup.terms[k], region="") for k in mine),
        capacity_requests_per_s=float(found.served.capacity_requests_per_s[region]),
        regions=None,
    )


def _together(hours: list[Hour], ways: float) -> Hour:
    """One hour of all regions: sums, and latencies by request with the time on the way; ``ways`` is its sum, per s."""
    rate = sum(h.rate_requests_per_s for h in hours)

    def mean(name: str, more: float = 0.0) -> float:
        total = sum(h.rate_requests_per_s * getattr(h, name) for h in hours if h.rate_requests_per_s > 0.0)
        return (total + more) / rate if rate > 0.0 else 0.0

    return Hour(
        start_s=hours[0].start_s,
        rate_requests_per_s=rate,
        num_replicas=sum(h.num_replicas for h in hours),
        ttft_s=mean("ttft_s", ways),
        tpot_s=mean("tpot_s"),
        power_w=sum(h.power_w for h in hours),
        host_power_w=sum(h.host_power_w for h in hours),
        usd_per_s=sum(h.usd_per_s for h in hours),
        used_frac=max(h.used_frac for h in hours),
        capped=_capped(hours),
    )


def _capped(hours: list[Hour]) -> CappedHour | None:
    """One hour under the limits of all regions, each of which stands in one; None where nothing is limited or
    metered."""
    parts = [(h.num_replicas, h.capped) for h in hours if h.capped is not None]
    if not parts:
        return None
    running = max(sum(count for count, _ in parts), 1e-12)

    def mean(values: list[float]) -> float:
        return sum(count * v for (count, _), v in zip(parts, values, strict=True)) / running

    names = [f.name for f in fields(ReplicaState)]
    return CappedHour(
        replica=ReplicaState(**{name: mean([getattr(c.replica, name) for _, c in parts]) for name in names}),
        clock_frac=mean([c.clock_frac for _, c in parts]),
        drawn_w=tuple(map(sum, zip(*(c.drawn_w for _, c in parts), strict=True))),
        throttled_frac=tuple(map(max, zip(*(c.throttled_frac for _, c in parts), strict=True))),
    )


def regional_by_hour(
    setup: FleetService, found: RegionMap, hours: RegionalHours, lengths_s: Floats
) -> dict[str, ByHour]:
    """Price and carbon of every region that has a table, by the hours of UTC."""
    priced: dict[str, ByHour] = {}
    for region in found.regions:
        if region.hours is not None:
            power_w = np.array([h.power_w + h.host_power_w for h in hours.by_region[region.name]])
            clock = Clock(start_s=found.start_s, offset_s=region.utc_offset_s)
            is_paid = all(t.purchase == "owned" for t in setup.terms if t.region == region.name)
            priced[region.name] = steady_by_hour(
                region.hours, region.pue_ratio, clock, lengths_s, power_w, is_paid=is_paid
            )
    return priced


def all_regions(priced: dict[str, ByHour]) -> ByHour | None:
    """All of them in one; None without any."""
    return together(list(priced.values()))
