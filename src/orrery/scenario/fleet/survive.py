"""Replicas that survive the loss of a region, a zone or one replica at the busiest hour, with the SLOs still met."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.fleet.service.rate_curve import hourly_means
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.fleet.curve import curve_of
from orrery.scenario.fleet.loss_tries import RegionTries, Tries, ZoneTries
from orrery.scenario.fleet.read import FleetInputs
from orrery.scenario.fleet.traffic import mean_rate

KINDS = ("region", "zone", "replica")


@dataclass(frozen=True, slots=True, kw_only=True)
class Survival:
    """The fewest replicas that meet the SLOs at the busiest hour, without and with the loss."""

    kind: str
    zones: tuple[str, ...]
    peak_requests_per_s: float
    needed: int  # without any loss: N
    replicas: int  # with it: N + k
    attained: Mapping[str, float]  # by objective: share of the requests of the outage
    devices_per_replica: int
    notes: tuple[str, ...]
    p99_ttft_s: Mapping[str, float]  # of the busiest hour without the loss, and during it
    by_region: Mapping[str, int] = field(default_factory=dict[str, int])  # replicas of each region, where there are any

    @property
    def spare(self) -> int:
        """The k of N + k."""
        return self.replicas - self.needed

    def to_json(self) -> dict[str, Any]:
        """The answer in SI units."""
        return to_json(
            {
                "survive": self.kind,
                "zones": self.zones,
                "peak_requests_per_s": self.peak_requests_per_s,
                "needed": self.needed,
                "replicas": self.replicas,
                "spare": self.spare,
                "devices_per_replica": self.devices_per_replica,
                "p99_ttft_s": dict(self.p99_ttft_s),
                **({"by_region": dict(self.by_region)} if self.by_region else {}),
                "attained_frac": dict(self.attained),
                "notes": list(self.notes),
            }
        )


def survival(inputs: FleetInputs, kind: str) -> Survival | InfeasibleAnswer:
    """Size a fleet of one pool, or of one in each region, for the loss of a region, of a full zone or of a replica."""
    if kind not in KINDS:
        raise ScenarioError(f"survive: got {kind!r}; write region, zone or replica.")
    if not inputs.scenario.slo:
        raise ScenarioError('survive: needs an SLO to hold; write slo = ["p99_ttft:2000"].')
    if inputs.has_prefill:
        raise ScenarioError("survive: sizes replicas for both phases; leave out those for prompts alone.")
    if inputs.regions:
        return _sized(inputs, kind, RegionTries(inputs, kind))
    if kind == "region":
        raise ScenarioError('survive: there are no regions; write [[region]], or regions = "westeurope,eastus".')
    pool, *others = inputs.pools
    if others:
        raise ScenarioError("survive: sizes one pool; keep one [[pool]].")
    written = pool.block.zones or inputs.top.zones or ""
    zones = tuple(zone for word in written.split(",") if (zone := word.strip()))
    if kind == "zone" and len(zones) < 2:
        raise ScenarioError('survive: a fleet in one zone does not survive its loss; write zones = "a,b,c".')
    rate, notes = mean_rate(inputs.scenario)
    law = curve_of(inputs.top)
    peak = rate * (float(hourly_means(law.weekly()).max()) if law is not None else 1.0)
    return _sized(inputs, kind, ZoneTries(inputs, zones, kind, peak), zones, notes)


def _sized(
    inputs: FleetInputs, kind: str, tries: Tries, zones: tuple[str, ...] = (), notes: tuple[str, ...] = ()
) -> Survival | InfeasibleAnswer:
    """The fewest replicas without a loss, and with it."""
    first = tries.at(tries.least, lost=False)
    if isinstance(first, InfeasibleAnswer):
        return first
    needed = tries.fewest(lost=False)
    replicas = tries.fewest(lost=True, start=needed)
    return Survival(
        kind=kind,
        zones=zones,
        peak_requests_per_s=tries.peak_requests_per_s,
        needed=needed,
        replicas=replicas,
        attained=tries.seen[replicas, True],
        devices_per_replica=tries.devices,
        notes=notes,
        p99_ttft_s={"without": tries.p99_s[replicas, False], "during": tries.p99_s[replicas, True]},
        by_region=tries.by_region(replicas),
    )
