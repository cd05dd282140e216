"""Regions and origins of a fleet, the ways between them, and the costs of an hour that routers between regions read."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.fleet.hours.shift import Hours
from orrery.fleet.regions.moves import WideArea
from orrery.fleet.regions.routing import Flags, Floats, RegionCosts, RegionView
from orrery.serving.requests import Ints
from orrery.serving.simulation.regions._kernel import Regions

HOUR_S, QUARTER_S = 3600.0, 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One region: its zones, its clock, and its electricity by the hour of that clock."""

    name: str
    zones: tuple[str, ...] = ()
    utc_offset_s: float = 0.0
    hours: Hours | None = None
    pue_ratio: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a part of the requests comes from."""

    name: str
    share_frac: float
    regions: tuple[str, ...] = ()  # that may serve it; none named: all


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionRouter:
    """A rule of the extension point ``fleet.region_router`` and its knobs."""

    name: str
    rule: Callable[[RegionView, Any], RegionCosts]
    knobs: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Served:
    """Cost of serving in each region: arrays by region, of a replica of its first pool."""

    capacity_requests_per_s: Floats
    prefill_capacity_requests_per_s: Floats
    capacity_requests: Floats  # in flight at that rate
    ttft_s: Floats  # of a request alone
    usd_per_request: Floats  # rent at capacity
    energy_j_per_request: Floats  # of devices and hosts, at capacity
    pays_electricity: Flags  # owned: a rent contains electricity


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionMap:
    """Regions, origins and the ways between them. Tables have a row an origin and a column a region."""

    regions: tuple[Region, ...]
    origins: tuple[Origin, ...]
    round_trip_s: Floats
    router: RegionRouter
    served: Served
    upload_s: Floats  # by origin: until the bytes of a request are through its narrowest link
    trips_ratio: float = 1.0  # round trips until the first token: 1 on a connection that stays open
    start_s: float = 0.0  # of the run, in the week of UTC
    ttft_limit_s: float = inf
    wide_area: WideArea | None = None  # links over which caches move; None: none moves
    allowed: Flags = field(init=False)

    def __post_init__(self) -> None:
        names = [r.name for r in self.regions]
        table = [[not o.regions or name in o.regions for name in names] for o in self.origins]
        object.__setattr__(self, "allowed", np.array(table, dtype=np.bool_))
        if self.round_trip_s.shape != self.allowed.shape or not (self.round_trip_s >= 0.0).all():
            raise ScenarioError("regions: write a round trip from 0 for every origin and region.")
        if not self.trips_ratio >= 1.0:
            raise ScenarioError(f"round_trips = {self.trips_ratio:g}; write a number from 1.")

    @property
    def reach_s(self) -> Floats:
        """From a client to a region: all round trips but the last half, and the upload."""
        return (self.trips_ratio - 0.5) * self.round_trip_s + self.upload_s[:, None]

    @property
    def back_s(self) -> Floats:
        """From a region to a client."""
        return 0.5 * self.round_trip_s

    def index(self, name: str) -> int:
        """The number of a region."""
        return [r.name for r in self.regions].index(name)

    @property
    def renewal_s(self) -> float:
        """Time between two looks at the hours' prices: an hour, or a quarter where clocks differ by parts of one."""
        return HOUR_S if all(r.utc_offset_s % HOUR_S == 0.0 for r in self.regions) else QUARTER_S

    def view(self, now_s: float) -> RegionView:
        """The regions at a moment of the run."""
        usd, carbon_g = (np.array([self._electricity(r, name, now_s) for r in self.regions]) for name in PRICES)
        pue = np.array([r.pue_ratio for r in self.regions])
        joules = self.served.energy_j_per_request * pue
        return RegionView(
            origins=tuple(o.name for o in self.origins),
            regions=tuple(r.name for r in self.regions),
            allowed=self.allowed,
            round_trip_s=self.round_trip_s,
            ttft_s=self.reach_s + self.back_s + self.served.ttft_s,
            ttft_limit_s=self.ttft_limit_s,
            usd_per_request=self.served.usd_per_request + joules * usd * self.served.pays_electricity,
            carbon_g_per_request=joules * carbon_g,
            capacity_requests=self.served.capacity_requests,
        )

    def _electricity(self, region: Region, name: str, now_s: float) -> float:
        """A column of a region's table of hours at a moment; 0 without a table."""
        if region.hours is None:
            return 0.0
        values: Floats = getattr(region.hours, name)
        hour = int(np.floor((self.start_s + region.utc_offset_s + now_s) / HOUR_S + 1e-9))
        return float(values[hour % values.size])

    def costs(self, now_s: float) -> RegionCosts:
        """The router's answer for a moment, with regions that an origin may not go to left out."""
        found = self.router.rule(self.view(now_s), self.router.knobs)
        weight = (
            np.where(self.allowed, found.weight_ratio, 0.0) if found.weight_ratio.size else np.zeros(self.allowed.shape)
        )
        return RegionCosts(
            cost_ratio=np.where(self.allowed, found.cost_ratio, inf),
            full_requests=found.full_requests,
            weight_ratio=weight,
        )

    def table(self, lane_region: Ints) -> Regions:
        """The loop's tables at the start of a run."""
        first, num = self.costs(0.0), len(self.regions)
        return Regions(
            lane_region=lane_region,
            replicas=np.zeros(num, dtype=np.int64),
            arrived=np.zeros(num, dtype=np.int64),
            reach_s=self.reach_s.astype(np.float64),
            back_s=self.back_s.astype(np.float64),
            cost=first.cost_ratio.astype(np.float64),
            weight=first.weight_ratio.astype(np.float64),
            credit=np.zeros(first.cost_ratio.shape),
            full_requests=first.full_requests.astype(np.float64),
            loads=np.zeros(num),
        )

    def renew(self, table: Regions, now_s: float) -> None:
        """Write the costs of a moment into the loop's tables."""
        found = self.costs(now_s)
        table.cost[:], table.weight[:], table.full_requests[:] = (
            found.cost_ratio,
            found.weight_ratio,
            found.full_requests,
        )


PRICES = ("usd_per_j", "carbon_g")
"""Columns of a table of hours: money and CO2 of a joule."""
