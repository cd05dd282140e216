"""How many replicas survive the loss of a zone, or of one replica, at the busiest hour, with the SLOs still met."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.service.rate_curve import hourly_means
from orrery.fleet.service.run import run_fleet
from orrery.scenario.answer import to_json
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.attainment import needed_frac
from orrery.scenario.fleet.build import built
from orrery.scenario.fleet.curve import curve_of
from orrery.scenario.fleet.read import FleetInputs, read_fleet
from orrery.scenario.fleet.traffic import mean_rate, traffic_for
from orrery.scenario.objectives import read_objectives

KINDS = ("zone", "replica")
BEFORE_S, OUTAGE_S, AFTER_S = 600.0, 1200.0, 300.0
"""The stretch of the busiest hour that is simulated: until the loss, while it lasts, and a while later."""

MOST = 4096
"""Replicas that are tried."""


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
                "attained_frac": dict(self.attained),
                "notes": list(self.notes),
            }
        )


def survival(inputs: FleetInputs, kind: str) -> Survival | InfeasibleAnswer:
    """Size a fleet of one pool for the loss of its first zone (the fullest), or of one replica."""
    if kind not in KINDS:
        raise ScenarioError(f"survive: got {kind!r}; write zone or replica.")
    if not inputs.scenario.slo:
        raise ScenarioError('survive: needs an SLO to hold; write slo = ["p99_ttft:2000"].')
    if inputs.has_prefill:
        raise ScenarioError("survive: sizes replicas for both phases; leave out those for prompts alone.")
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
    tries = _Tries(inputs, zones, kind, peak)
    first = tries.at(1, lost=False)
    if isinstance(first, InfeasibleAnswer):
        return first
    needed = tries.fewest(lost=False)
    replicas = tries.fewest(lost=True, start=needed)
    return Survival(
        kind=kind,
        zones=zones,
        peak_requests_per_s=peak,
        needed=needed,
        replicas=replicas,
        attained=tries.seen[replicas, True],
        devices_per_replica=tries.devices,
        notes=notes,
    )


class _Tries:
    """Simulations of the busiest hour with a fixed number of replicas, each done once."""

    def __init__(self, inputs: FleetInputs, zones: tuple[str, ...], kind: str, peak: float) -> None:
        self._inputs, self._zones, self._kind, self._peak = inputs, zones, kind, peak
        self.seen: dict[tuple[int, bool], Mapping[str, float]] = {}
        self.devices = 0
        self._start = 1

    def at(self, replicas: int, *, lost: bool) -> Mapping[str, float] | InfeasibleAnswer:
        """Share of the requests of the outage that meet each objective."""
        if (replicas, lost) in self.seen:
            return self.seen[replicas, lost]
        names = self._zones if self._kind == "zone" else tuple(f"r{k}" for k in range(replicas))
        outage = [{"zone": names[0], "start_s": BEFORE_S, "length_s": OUTAGE_S}] if lost else None
        plain = {
            **self._inputs.scenario.written(),
            **self._inputs.pools[0].scenario.written(),
            "trace": self._inputs.scenario.trace,
            "rate": self._peak,
            "replicas": replicas,
            "zones": ",".join(names),
            "cold_start_s": self._inputs.pools[0].block.cold_start_s or self._inputs.top.cold_start_s,
            "days": (BEFORE_S + OUTAGE_S + AFTER_S) / 86_400.0,
            "outage": outage,
        }
        inputs = read_fleet(plain)
        traffic = traffic_for(inputs)
        found = built(inputs, traffic.split.requests, traffic.length_s)
        if isinstance(found, Infeasible):
            return InfeasibleAnswer(infeasible=found, notes=(), settings=plain)
        run = run_fleet(found.setup, traffic.split.requests, seed=inputs.scenario.seed or 0)
        if isinstance(run, Infeasible):
            return InfeasibleAnswer(infeasible=run, notes=(), settings=plain)
        self.devices = found.setup.service.pools[0].deployment.layout.num_devices
        self._start = max(1, ceil(self._peak / found.setup.capacity_requests_per_s))
        during = (traffic.split.requests.arrive_s >= BEFORE_S) & (traffic.split.requests.arrive_s < BEFORE_S + OUTAGE_S)
        shares: dict[str, float] = {}
        for o in read_objectives(inputs.scenario.slo):
            value = np.nan_to_num(run.latency_s(o.metric)[during], nan=np.inf)
            shares[o.name] = float((value <= o.limit_s).mean()) if value.size else 1.0
        self.seen[replicas, lost] = shares
        return shares

    def meets(self, replicas: int, *, lost: bool) -> bool:
        """Whether the SLOs hold with so many replicas."""
        found = self.at(replicas, lost=lost)
        if isinstance(found, InfeasibleAnswer):
            return False
        needed = {
            o.name: o.share_frac or needed_frac(self._inputs.scenario)
            for o in read_objectives(self._inputs.scenario.slo)
        }
        return all(found[name] >= need for name, need in needed.items())

    def fewest(self, *, lost: bool, start: int = 0) -> int:
        """The fewest replicas that meet the SLOs: doubling steps up, then halving back."""
        low, high = start - 1 if start else 0, max(start, self._start if not lost else start)
        step = 1
        while not self.meets(high, lost=lost):
            low, high, step = high, high + step, 2 * step
            if high > MOST:
                raise ScenarioError(f"survive: {MOST:,} replicas do not meet the SLOs either; loosen them.")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.meets(middle, lost=lost) else (middle, high)
        return high
