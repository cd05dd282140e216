"""Regions as they are written, and the map of regions, origins and ways that a fleet is simulated with."""

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import knobs_from
from orrery.fleet.hours.shift import Hours
from orrery.fleet.regions import REGION_ROUTERS
from orrery.fleet.regions.region_map import Region, RegionMap, RegionRouter
from orrery.fleet.service.setup import PoolTerms
from orrery.scenario.fleet.blocks import FleetTop, OriginBlock, RegionBlock
from orrery.scenario.fleet.origins import origins_of
from orrery.scenario.fleet.read import FleetInputs, knobs_written
from orrery.scenario.fleet.served import served_of
from orrery.scenario.fleet.ways import names_of, numbers_of, utc_offset_s, ways_of
from orrery.scenario.fleet.wide_area import wide_area_of
from orrery.scenario.shift import J_PER_KWH, S_PER_HOUR, read_hours
from orrery.serving.requests import Requests
from orrery.serving.simulation.service import Pool

NEAREST = "nearest"
WITHOUT_REGIONS = {
    "graph": "a graph's calls are placed on devices, not in regions",
    "mix": "a mix rents its devices in one place",
    "share": "models that share replicas stand in one place",
    "power_budget_w": "a budget of watts is of one site; write [[row]] with limit_w for each",
}
"""Ways of asking that know no regions, and why."""

HOURLY = (1, 24, 168)
"""Numbers of a curve of prices: one for all hours, of a day, of a week."""


def region_map_of(
    inputs: FleetInputs,
    pools: Sequence[Pool],
    terms: Sequence[PoolTerms],
    requests: Requests,
    limits_s: dict[str, float],
) -> tuple[RegionMap | None, tuple[str, ...]]:
    """The map of a fleet with what was assumed in it; None where it stands in no regions."""
    if not inputs.regions:
        return None, ()
    regions, top = tuple(region_of(inputs, block) for block in inputs.regions), inputs.top
    ways = ways_of(inputs.origins, inputs.regions)
    wide_area, more = wide_area_of(top, tuple(inputs.regions), requests)
    found = RegionMap(
        regions=regions,
        origins=origins_of(inputs),
        round_trip_s=ways.round_trip_s,
        router=_router(top),
        served=served_of([r.name for r in regions], pools, terms, requests, limits_s),
        upload_s=np.array([_upload_s(top, block) for block in inputs.origins]),
        trips_ratio=top.round_trips or 1.0,
        start_s=S_PER_HOUR * (top.start_hour or 0.0),
        ttft_limit_s=limits_s.get("ttft", inf),
        wide_area=wide_area,
    )
    _check_origins(found)
    found.costs(0.0)  # whatever a knob says wrong is said now
    return found, (*ways.notes, *more, *_notes(found, inputs))


def check_regions(settings: Mapping[str, Any]) -> None:
    """Refuse regions where nothing would stand in them."""
    given = [name for name in ("region", "regions", "origin", "origins") if settings.get(name)]
    for way, why in WITHOUT_REGIONS.items():
        if given and settings.get(way):
            raise ScenarioError(f"{given[0]}: {why}; leave {given[0]} or {way} out.")


def region_of(inputs: FleetInputs, block: RegionBlock) -> Region:
    """One region as it is simulated."""
    return Region(
        name=str(block.name),
        zones=names_of(block.zones),
        utc_offset_s=utc_offset_s(block),
        hours=_hours(block),
        pue_ratio=block.pue or inputs.scenario.pue or 1.0,
    )


def device_price(block: RegionBlock, device: str) -> float | None:
    """Dollars an hour of a device in a region; None where the region has no prices of its own."""
    if block.prices is None:
        return None
    prices = numbers_of(f"region {block.name}: prices", block.prices, "h100-sxm=2.5,l4=0.6")
    if device not in prices:
        raise ScenarioError(
            f"region {block.name}: prices: there is none for {device}; write {device}=2.5 there, or usd_per_hour in "
            "its pool."
        )
    return prices[device]


def _hours(block: RegionBlock) -> Hours | None:
    """Price and carbon of a region's electricity by the hour; None where nothing says."""
    curves = {name: getattr(block, name) for name in ("usd_per_kwh", "carbon_g_per_kwh")}
    if block.hours is not None:
        if given := [name for name, value in curves.items() if value is not None]:
            raise ScenarioError(f"region {block.name}: {given[0]}: hours has it already; leave one of both out.")
        return read_hours(Path(block.hours))
    if all(value is None for value in curves.values()):
        return None
    rows = {name: _curve(block, name, value) for name, value in curves.items()}
    size = max(row.size for row in rows.values())
    usd, carbon = (np.resize(row, size) / J_PER_KWH for row in rows.values())
    return Hours(length_s=S_PER_HOUR, base_w=np.zeros(size), usd_per_j=usd, carbon_g=carbon)


def _curve(block: RegionBlock, name: str, written: str | None) -> np.ndarray:
    try:
        found = np.array([float(word) for word in (written or "0").split(",")])
    except ValueError:
        found = np.zeros(0)
    is_low = name == "carbon_g_per_kwh" and bool((found < 0.0).any())
    if found.size not in HOURLY or not np.isfinite(found).all() or is_low:
        raise ScenarioError(
            f"region {block.name}: {name}: got {(written or '')[:40]!r}; write a number, or 24 or 168 of them for the "
            "hours of its day or week."
        )
    return found


def _router(top: FleetTop) -> RegionRouter:
    """The router between regions with its knobs."""
    knobs = knobs_written("region_router_knob", top.region_router_knob, "full_ratio=0.8")
    technique = REGION_ROUTERS.get((top.region_router or NEAREST).strip())
    return RegionRouter(name=technique.written, rule=technique.rule, knobs=knobs_from(technique, knobs))


def _upload_s(top: FleetTop, block: OriginBlock) -> float:
    """Time until a request's bytes are through its origin's uplink."""
    if top.request_bytes is None:
        if block.bytes_per_s is not None:
            raise ScenarioError(f"origin {block.name}: bytes_per_s: for what? Write request_bytes = 2e6 at the top.")
        return 0.0
    if not block.bytes_per_s:
        raise ScenarioError(f"origin {block.name}: request_bytes needs its uplink; write bytes_per_s = 12.5e6.")
    return top.request_bytes / block.bytes_per_s


def _check_origins(found: RegionMap) -> None:
    """Refuse origins that may be served nowhere."""
    names = [r.name for r in found.regions]
    for origin in found.origins:
        if unknown := [name for name in origin.regions if name not in names]:
            raise ScenarioError(
                f"origin {origin.name}: regions: there is no region {unknown[0]!r}; the regions are {', '.join(names)}."
            )


def _notes(found: RegionMap, inputs: FleetInputs) -> tuple[str, ...]:
    """Assumptions, and what a router cannot see."""
    notes: list[str] = []
    blank = [r.name for r in found.regions if r.hours is None]
    column = {"cheapest": "usd_per_j", "cleanest": "carbon_g"}.get(found.router.name)
    if found.router.name == "cleanest" and blank:
        raise ScenarioError(
            f"region_router: cleanest: the carbon of region {blank[0]} is missing; write carbon_g_per_kwh there."
        )
    if column and not np.isfinite(found.ttft_limit_s):
        notes.append(
            f"region_router: {found.router.name}: no limit on TTFT, so no way is too far; write slo = ttft:500"
        )
    if blank and len(blank) < len(found.regions):
        notes.append(f"regions: {', '.join(blank)}: no price or carbon of electricity is known there; none is counted")
    late = (found.ttft_limit_s < (found.reach_s + found.back_s)) | ~found.allowed
    for k, origin in enumerate(found.origins):
        if late[k].all():
            notes.append(f"origin {origin.name}: the round trip alone is longer than the limit on TTFT")
    return tuple(notes)
