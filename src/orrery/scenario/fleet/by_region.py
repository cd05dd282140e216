"""Answers by region and by origin: who was served where, how well, and what that cost and emitted."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from orrery.base.units import percent
from orrery.fleet.regions.region_map import RegionMap
from orrery.fleet.service.result import Flags, FleetRun
from orrery.scenario.fleet.by_hour import ByHour, by_region_of_run, drawn_until_j
from orrery.scenario.fleet.cache_moves import CacheMoves, cache_moves_of
from orrery.scenario.fleet.moved_cache import MovedCache, moved_caches
from orrery.serving.requests import Floats
from orrery.serving.simulation.tables import _kernel as tables

PERCENTS = (50.0, 90.0, 99.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """Percentiles of what users saw, by their name; None where nobody saw any."""

    ttft_s: Mapping[str, float | None]
    e2el_s: Mapping[str, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class OriginAnswer:
    """One origin's requests."""

    name: str
    num_requests: int
    attained_frac: float | None
    latencies: Latencies
    served_in: Mapping[str, int]  # by region
    elsewhere_frac: float  # of those served: not in the nearest region that is allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionAnswer:
    """One region: what it served, and what its pools cost, drew and emitted."""

    name: str
    num_requests: int
    attained_frac: float | None
    latencies: Latencies
    guests_frac: float  # of its requests: from origins that have a nearer region
    num_replicas: float  # paid for, on average
    rent_usd: float
    electricity_usd: float
    energy_j: float  # of devices and hosts
    carbon_g: float | None

    @property
    def cost_usd(self) -> float:
        """Rent and electricity."""
        return self.rent_usd + self.electricity_usd


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRegion:
    """All regions and origins of a run."""

    router: str
    regions: tuple[RegionAnswer, ...]
    origins: tuple[OriginAnswer, ...]
    elsewhere_frac: float  # of the served requests: not in their nearest region
    moved: tuple[MovedCache, ...] = ()
    cache_moves: CacheMoves | None = None  # None: none may move

    def to_json(self) -> dict[str, Any]:
        """Tables as plain data."""
        return {
            "region_router": self.router,
            "elsewhere_frac": self.elsewhere_frac,
            "regions": [_plain(r) | {"cost_usd": r.cost_usd} for r in self.regions],
            "origins": [_plain(o) for o in self.origins],
            "moved_cache": [asdict(m) for m in self.moved],
            "cache_moves": self.cache_moves and asdict(self.cache_moves),
        }


def _plain(row: RegionAnswer | OriginAnswer) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in type(row).__dataclass_fields__ if name != "latencies"}
    return {**found, "ttft_s": dict(row.latencies.ttft_s), "e2el_s": dict(row.latencies.e2el_s)}


def by_region_of(run: FleetRun) -> ByRegion | None:
    """Regions and origins of a run; None where it stands in no regions."""
    found = run.setup.regions
    if found is None:
        return None
    is_done = run.outcome.status == tables.DONE
    region, origin = run.outcome.region, run.origin
    is_away = is_done & (region != nearest_of(found)[origin])
    num, hours = max(1, int(is_done.sum())), by_region_of_run(run)
    return ByRegion(
        router=found.router.name,
        regions=tuple(
            _region(run, found.regions[k].name, hours[found.regions[k].name], is_done & (region == k), is_away)
            for k in range(len(found.regions))
        ),
        origins=tuple(_origin(run, found, k, origin == k, is_done, is_away) for k in range(len(found.origins))),
        elsewhere_frac=float(is_away.sum()) / num,
        moved=moved_caches(run),
        cache_moves=cache_moves_of(run),
    )


def nearest_of(found: RegionMap) -> np.ndarray:
    """The nearest region that each origin may go to."""
    return np.argmin(np.where(found.allowed, found.round_trip_s, np.inf), axis=1)


def _origin(run: FleetRun, found: RegionMap, k: int, mine: Flags, is_done: Flags, is_away: Flags) -> OriginAnswer:
    served = mine & is_done
    counts = np.bincount(run.outcome.region[served].astype(np.int64), minlength=len(found.regions)).tolist()
    return OriginAnswer(
        name=found.origins[k].name,
        num_requests=int(mine.sum()),
        attained_frac=_share(run, mine),
        latencies=_latencies(run, served),
        served_in={r.name: n for r, n in zip(found.regions, counts, strict=True)},
        elsewhere_frac=float((is_away & mine).sum()) / max(1, int(served.sum())),
    )


def _region(run: FleetRun, name: str, by_hour: ByHour | None, served: Flags, is_away: Flags) -> RegionAnswer:
    end_s = max(run.end_s, 1e-9)
    mine = tuple(p for p, t in enumerate(run.setup.terms) if t.region == name)
    drawn: Floats = drawn_until_j(run, np.array([run.end_s]), mine)
    return RegionAnswer(
        name=name,
        num_requests=int(served.sum()),
        attained_frac=_share(run, served),
        latencies=_latencies(run, served),
        guests_frac=float((is_away & served).sum()) / max(1, int(served.sum())),
        num_replicas=sum(run.paid_s[p] for p in mine) / end_s,
        rent_usd=sum(run.paid_s[p] * run.setup.terms[p].usd_per_s for p in mine),
        electricity_usd=0.0 if by_hour is None else float(by_hour.usd.sum()),
        energy_j=float(drawn[0]),
        carbon_g=None if by_hour is None else float(by_hour.carbon_g.sum()),
    )


def _share(run: FleetRun, which: Flags) -> float | None:
    """Share of some requests within every limit; None without limits or requests."""
    return float(run.within[which].mean()) if run.setup.limits_s and which.any() else None


def _latencies(run: FleetRun, which: Flags) -> Latencies:
    return Latencies(ttft_s=_percentiles(run.ttft_s[which]), e2el_s=_percentiles(run.e2el_s[which]))


def _percentiles(values: Floats) -> dict[str, float | None]:
    found = values[np.isfinite(values)]
    return {f"p{p:g}": float(np.quantile(found, p / 100.0)) if found.size else None for p in PERCENTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class AgainstNearest:
    """A run beside the same fleet with every request in its nearest region: differences, as fractions of the latter."""

    cost_frac: float | None
    energy_frac: float | None
    carbon_frac: float | None  # None without carbon
    p99_ttft_s: float | None  # how much later the slowest first tokens come
    attained_frac: float | None  # how many requests more are within all limits, as a share of all

    @property
    def sentence(self) -> str:
        """All differences in one sentence."""
        named = (("cost", self.cost_frac), ("energy", self.energy_frac), ("CO2", self.carbon_frac))
        parts = [f"{name} {percent(value, 1, is_signed=True)}" for name, value in named if value is not None]
        if self.p99_ttft_s is not None:
            parts.append(f"p99 TTFT {1e3 * self.p99_ttft_s:+.0f} ms")
        if self.attained_frac is not None:
            parts.append(f"requests in time {100.0 * self.attained_frac:+.2f} percentage points")
        return f"Beside every request in its nearest region: {', '.join(parts)}."


def against_nearest(run: FleetRun, near: FleetRun, usd: tuple[float, float]) -> AgainstNearest:
    """A run against one with the nearest region for all, and what both cost."""
    carbon = [_carbon_g(r) for r in (run, near)]
    shares = [_share(r, np.ones(r.requests.count, dtype=np.bool_)) for r in (run, near)]
    slow = [_percentiles(r.ttft_s)["p99"] for r in (run, near)]
    joules = [r.energy_j + r.host_energy_j for r in (run, near)]
    return AgainstNearest(
        cost_frac=_apart(*usd),
        energy_frac=_apart(joules[0], joules[1]),
        carbon_frac=None if carbon[0] is None or carbon[1] is None else _apart(carbon[0], carbon[1]),
        p99_ttft_s=None if slow[0] is None or slow[1] is None else slow[0] - slow[1],
        attained_frac=None if shares[0] is None or shares[1] is None else shares[0] - shares[1],
    )


def _carbon_g(run: FleetRun) -> float | None:
    found = [h.carbon_g.sum() for h in by_region_of_run(run).values() if h is not None]
    return float(sum(found)) if found and sum(found) > 0.0 else None


def _apart(value: float, other: float) -> float | None:
    return value / other - 1.0 if other > 0.0 else None
