"""A service over days: its pools of replicas, how fast they start, what they cost, and who decides how many run."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from orrery.base.errors import ScenarioError
from orrery.fleet.regions.region_map import RegionMap
from orrery.fleet.service.disruptions import Disruptions
from orrery.fleet.service.power_readings import PowerCap
from orrery.serving.requests import Floats
from orrery.serving.simulation.service import Service

Purchase = Literal["owned", "reserved", "on-demand", "spot"]
PURCHASES: tuple[Purchase, ...] = ("owned", "reserved", "on-demand", "spot")
COMMITTED = frozenset({"owned", "reserved"})
"""Kinds of purchase that cost the same whether a replica runs or not."""


def label(name: str) -> str:
    """A pool as messages and notes call it: pools without a name of their own are called pools already."""
    return name if name.split(" ", maxsplit=1)[0] == "pool" else f"pool {name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTerms:
    """Terms of one pool of equal replicas, in the order of the service's pools.

    ``replicas_max`` is the number of replicas that the service's pool holds; ``replicas_min`` of them run from the
    start. A pool that is owned or reserved is paid for whole, any other one from a replica's start to its release.
    """

    name: str
    replicas_min: int
    replicas_max: int
    cold_start_s: float = 0.0
    purchase: Purchase = "on-demand"
    usd_per_s: float = 0.0  # of one replica
    idle_power_w: float = 0.0  # of the devices of one replica
    host_power_w: float = 0.0  # of the machines around them
    rated_power_w: float = 0.0  # of a replica with its machines, at most
    zones: tuple[str, ...] = ("",)  # replicas are dealt to them in turn
    racks: tuple[str, ...] = ("",)  # likewise
    power_priority: str = ""  # low or high: which clocks a power cap lowers first; "": a share of the replicas is low
    region: str = ""  # where it stands; empty: a fleet without regions

    def __post_init__(self) -> None:
        if not 0 <= self.replicas_min <= self.replicas_max:
            raise ScenarioError(
                f"{label(self.name)}: replicas_min = {self.replicas_min} and replicas_max = {self.replicas_max} "
                "exclude each other; write a minimum that is not above the maximum."
            )
        if self.replicas_max < 1:
            raise ScenarioError(f"{label(self.name)}: replicas_max = 0; write at least 1, or leave the pool out.")
        if not self.cold_start_s >= 0.0:
            raise ScenarioError(f"{label(self.name)}: cold_start_s = {self.cold_start_s:g}; write seconds from 0.")

    @property
    def is_committed(self) -> bool:
        """Whether the pool costs the same whatever runs."""
        return self.purchase in COMMITTED


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scaler:
    """An autoscaler: a rule of the extension point ``fleet.autoscaler`` and its knobs."""

    name: str
    rule: Callable[..., float]
    knobs: Any
    period_s: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FleetService:
    """Setup of a service over days. Pools of ``service`` hold as many replicas as may ever run at once."""

    service: Service
    terms: tuple[PoolTerms, ...]
    scaler: Scaler | None = None  # None: the minimum of every pool runs all the time
    prefill_scaler: Scaler | None = None  # of pools for prompts alone, which are scaled apart from the others
    disruptions: Disruptions = field(default_factory=Disruptions)
    sample_s: float = 15.0  # between two samples of what runs, where no autoscaler sets the pace
    capacity_requests_per_s: float = 0.0  # requests/s that one replica sustains within the limits; 0: not known
    prefill_capacity_requests_per_s: float = 0.0  # of one replica for prompts alone
    limits_s: dict[str, float] = field(default_factory=dict[str, float])  # by metric, what each request should meet
    horizon_s: float = 0.0  # billed at least so long; 0: to the last request
    wait_limit_s: float = float("inf")  # a request that nothing could take for so long is given up
    power_cap: PowerCap | None = None
    rate_forecast: tuple[Floats, Floats] | None = None  # times and arrivals/s of an earlier period, for forecasts
    regions: RegionMap | None = None

    def __post_init__(self) -> None:
        pools = self.service.own_pools
        if len(self.terms) != len(pools):
            raise ScenarioError(f"pools: {len(pools)} serve and {len(self.terms)} have terms.")
        for pool, terms in zip(pools, self.terms, strict=True):
            if pool.replicas != terms.replicas_max:
                raise ScenarioError(
                    f"{label(terms.name)}: {pool.replicas} replicas serve and replicas_max = {terms.replicas_max}."
                )
        self._check_regions()
        if self.prefill_scaler and not self.has_prefill:
            raise ScenarioError("prefill_autoscaler: no pool is for prompts alone; write prefill_replicas = 1.")
        if self.service.lends_cache and (self.scaler or self.disruptions.any):
            raise ScenarioError("lend_cache: replicas that hold cache for each other start and stop together.")

    def _check_regions(self) -> None:
        """Every pool stands in a region and every region has a pool, or there are none of both."""
        there = {r.name for r in self.regions.regions} if self.regions else {""}
        if {t.region for t in self.terms} != there:
            raise ScenarioError(
                f"regions: pools stand in {', '.join(sorted({t.region for t in self.terms}))} and the regions are "
                f"{', '.join(sorted(there))}; write a pool in each region."
            )
        if self.regions and self.service.lends_cache:
            raise ScenarioError("lend_cache: replicas that hold cache for each other stand in one region.")

    @property
    def region_numbers(self) -> tuple[int, ...]:
        """By pool: the number of its region; 0 without regions."""
        return tuple(self.regions.index(t.region) if self.regions else 0 for t in self.terms)

    @property
    def num_regions(self) -> int:
        """Places between which requests are dealt: 1 without regions."""
        return len(self.regions.regions) if self.regions else 1

    def capacities(self, region: int) -> tuple[float, float]:
        """Requests/s that a replica of a region sustains within the limits, and one for prompts alone; 0: not known."""
        if self.regions is None:
            return self.capacity_requests_per_s, self.prefill_capacity_requests_per_s
        served = self.regions.served
        return float(served.capacity_requests_per_s[region]), float(served.prefill_capacity_requests_per_s[region])

    @property
    def pace_s(self) -> float:
        """Seconds between two moments at which the service is looked at."""
        scalers = (self.scaler, self.prefill_scaler) if self.has_prefill else (self.scaler,)
        return min(self.pace_of(s) for s in scalers)

    @property
    def has_prefill(self) -> bool:
        """Whether prompts are computed by replicas of their own."""
        return any(p.role == "prompts" for p in self.service.pools)

    def pace_of(self, scaler: Scaler | None) -> float:
        """Seconds between two decisions of an autoscaler, or two samples without one."""
        return scaler.period_s if scaler else self.sample_s
