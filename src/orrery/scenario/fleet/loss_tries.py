"""Simulations of a fleet's busiest hour with a fixed number of replicas, with and without a loss."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import ceil, floor
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.memory import Infeasible
from orrery.fleet.regions.fluid import flows
from orrery.fleet.service.rate_curve import HOUR_S, WEEK_S, hourly_means
from orrery.fleet.service.run import run_fleet
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.attainment import needed_frac
from orrery.scenario.fleet.build import Built, built
from orrery.scenario.fleet.origins import OWN, origin_curves
from orrery.scenario.fleet.placed import zones_in
from orrery.scenario.fleet.read import FleetInputs, read_fleet
from orrery.scenario.fleet.traffic import mean_rate, traffic_for
from orrery.scenario.objectives import read_objectives
from orrery.scenario.requests import requests_for
from orrery.scenario.schema import merged

BEFORE_S, OUTAGE_S, AFTER_S = 600.0, 1200.0, 300.0
"""The stretch of the busiest hour that is simulated: until the loss, while it lasts, and a while later."""

MOST = 4096
"""Replicas that are tried."""


SAMPLE = 1000
"""Requests that are drawn for their mean lengths."""


class Tries(ABC):
    """Simulations that were done, each once."""

    peak_requests_per_s: float
    least: int = 1  # replicas that every try has

    def __init__(self, inputs: FleetInputs) -> None:
        self._inputs = inputs
        self.seen: dict[tuple[int, bool], Mapping[str, float]] = {}
        self.p99_s: dict[tuple[int, bool], float] = {}  # TTFT of the requests of the outage
        self.devices = 0
        self._start = 1

    @abstractmethod
    def cases(self, replicas: int, *, lost: bool) -> list[dict[str, Any]]:
        """Settings of the fleets that all must meet the SLOs, one for each loss that may come."""

    def by_region(self, replicas: int) -> dict[str, int]:
        """Replicas of each region; none where there are no regions."""
        return {}

    def at(self, replicas: int, *, lost: bool) -> Mapping[str, float] | InfeasibleAnswer:
        """Share of the requests of the outage that meet each objective, after the worst loss."""
        if (replicas, lost) in self.seen:
            return self.seen[replicas, lost]
        found: dict[str, float] = {}
        for plain in self.cases(replicas, lost=lost):
            one = self._simulated(plain, (replicas, lost))
            if isinstance(one, InfeasibleAnswer):
                return one
            found = {name: min(share, found.get(name, 1.0)) for name, share in one.items()}
        self.seen[replicas, lost] = found
        return found

    def _simulated(self, plain: dict[str, Any], key: tuple[int, bool]) -> Mapping[str, float] | InfeasibleAnswer:
        inputs = read_fleet(plain)
        traffic = traffic_for(inputs)
        found = built(inputs, traffic.split.requests, traffic.length_s)
        if isinstance(found, Infeasible):
            return InfeasibleAnswer(infeasible=found, notes=(), settings=plain)
        run = run_fleet(found.setup, traffic.split.requests, seed=inputs.scenario.seed or 0)
        if isinstance(run, Infeasible):
            return InfeasibleAnswer(infeasible=run, notes=(), settings=plain)
        self.devices = found.setup.service.pools[0].deployment.layout.num_devices
        self._start = max(1, ceil(self.peak_requests_per_s / found.setup.capacity_requests_per_s))
        during = (traffic.split.requests.arrive_s >= BEFORE_S) & (traffic.split.requests.arrive_s < BEFORE_S + OUTAGE_S)
        ttft_s = np.nan_to_num(run.ttft_s[during], nan=np.inf)
        slow_s = float(np.quantile(ttft_s, 0.99, method="inverted_cdf")) if ttft_s.size else 0.0
        self.p99_s[key] = max(slow_s, self.p99_s.get(key, 0.0))
        shares: dict[str, float] = {}
        for o in read_objectives(inputs.scenario.slo):
            value = np.nan_to_num(run.latency_s(o.metric)[during], nan=np.inf)
            shares[o.name] = float((value <= o.limit_s).mean()) if value.size else 1.0
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
        low = max(start, self.least) - 1
        high = max(start, self.least, 0 if lost else self._start)
        step = 1
        while not self.meets(high, lost=lost):
            low, high, step = high, high + step, 2 * step
            if high > MOST:
                raise ScenarioError(f"survive: {MOST:,} replicas do not meet the SLOs either; loosen them.")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.meets(middle, lost=lost) else (middle, high)
        self.at(high, lost=False)  # beside the loss stands the same fleet without one
        return high

    def _plain(self, replicas: int) -> dict[str, Any]:
        """Settings of the busiest stretch, but for where replicas stand and what is lost."""
        pool = self._inputs.pools[0]
        return {
            **self._inputs.scenario.written(),
            **pool.scenario.written(),
            "trace": self._inputs.scenario.trace,
            "rate": self.peak_requests_per_s,
            "replicas": replicas,
            "cold_start_s": pool.block.cold_start_s or self._inputs.top.cold_start_s,
            "days": (BEFORE_S + OUTAGE_S + AFTER_S) / 86_400.0,
        }


class ZoneTries(Tries):
    """A fleet of one pool that loses its first zone (the fullest), or its first replica."""

    def __init__(self, inputs: FleetInputs, zones: tuple[str, ...], kind: str, peak: float) -> None:
        super().__init__(inputs)
        self._zones, self._kind, self.peak_requests_per_s = zones, kind, peak

    def cases(self, replicas: int, *, lost: bool) -> list[dict[str, Any]]:
        """One fleet, with or without its loss."""
        names = self._zones if self._kind == "zone" else tuple(f"r{k}" for k in range(replicas))
        outage = [{"zone": names[0], "start_s": BEFORE_S, "length_s": OUTAGE_S}] if lost else None
        return [{**self._plain(replicas), "zones": ",".join(names), "outage": outage}]


class RegionTries(Tries):
    """A fleet in several regions that loses one of them, or a zone or replica of one, whichever hurts most.

    The busiest hour is that of all origins together; replicas are dealt to regions by what each serves in it.
    """

    def __init__(self, inputs: FleetInputs, kind: str) -> None:
        super().__init__(inputs)
        if len(inputs.pools) > len(inputs.regions):
            raise ScenarioError("survive: sizes one pool in each region; keep one [[pool]] for each.")
        if kind == "region" and len(inputs.regions) < 2:
            raise ScenarioError("survive: a fleet in one region does not survive its loss; write another [[region]].")
        self._kind, self.least = kind, len(inputs.regions)
        rate, _ = mean_rate(inputs.scenario)
        steady = inputs.top.model_copy(update={"bursts_per_day": None, "start_hour": None})
        calm = inputs.with_top(steady)
        curves = np.array([hourly_means(row) for row in origin_curves(calm, WEEK_S, 0)]) * rate
        self._hour = int(curves.sum(axis=0).argmax())
        self._rates = curves[:, self._hour]
        self.peak_requests_per_s = float(self._rates.sum())
        self._parts = self._shares(calm)

    def _shares(self, inputs: FleetInputs) -> np.ndarray:
        """Part of the busiest hour's requests that each region serves while none is full."""
        lengths = requests_for(merged(inputs.scenario, {"num_requests": SAMPLE}), 1.0)
        found = built(inputs, lengths, WEEK_S)
        regions = found.setup.regions if isinstance(found, Built) else None
        if regions is None:
            return np.full(len(inputs.regions), 1.0 / len(inputs.regions))
        limits = np.full(len(regions.regions), np.inf)
        served = flows(regions.costs(self._hour * HOUR_S), self._rates, limits, np.ones(limits.size)).sum(axis=0)
        return served / served.sum()

    def by_region(self, replicas: int) -> dict[str, int]:
        """Replicas of each region: at least one, and by their parts of the traffic (largest remainder)."""
        exact = self._parts * replicas
        found = [max(1, floor(x)) for x in exact.tolist()]
        order = sorted(range(len(found)), key=lambda k: found[k] - exact[k])
        for k in order[: max(0, replicas - sum(found))]:
            found[k] += 1
        return {str(r.name): n for r, n in zip(self._inputs.regions, found, strict=True)}

    def cases(self, replicas: int, *, lost: bool) -> list[dict[str, Any]]:
        """The fleet without a loss, or one for the loss in each region."""
        counts, top = self.by_region(replicas), self._inputs.top
        plain = {
            **self._plain(replicas),
            "replicas": None,
            "start_hour": float(self._hour),
            **{name: getattr(top, name) for name in ("region_router", "round_trips", "request_bytes")},
            "region_router_knob": list(top.region_router_knob),
            "region": [{**r.written(), "zones": None} for r in self._inputs.regions],
            "origin": self._origins(),
        }
        zones = {name: self._zones(name, count) for name, count in counts.items()}
        plain["pool"] = [
            {"name": name, "region": name, "replicas": count, "zones": ",".join(zones[name])}
            for name, count in counts.items()
        ]
        if not lost:
            return [plain]
        times = {"start_s": BEFORE_S, "length_s": OUTAGE_S}
        return [
            {**plain, "outage": [{**({"region": n} if self._kind == "region" else {"zone": zones[n][0]}), **times}]}
            for n in counts
        ]

    def _zones(self, region: str, count: int) -> tuple[str, ...]:
        """Zones of a region; each replica its own where one of them is lost."""
        if self._kind == "replica":
            return tuple(f"{region} {k}" for k in range(count))
        block = next(r for r in self._inputs.regions if r.name == region)
        pool = next(p.block for p in self._inputs.pools if p.block.region == region)
        return zones_in(self._inputs.top, pool, block)

    def _origins(self) -> list[dict[str, Any]]:
        """Origins with their parts of the busiest hour, steady."""
        parts = (self._rates / self._rates.sum()).tolist()
        return [
            {**b.model_copy(update={**dict.fromkeys(OWN), "share": part}).written()}
            for b, part in zip(self._inputs.origins, parts, strict=True)
        ]
