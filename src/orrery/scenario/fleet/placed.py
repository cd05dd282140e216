"""Regions, origins and pools as they belong together: which pool stands where, and what makes no sense."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from orrery.base.errors import ScenarioError, nearest
from orrery.catalog.places import get_place
from orrery.scenario.fields_regions import ROUTING_SETTINGS
from orrery.scenario.fleet.blocks import FleetTop, OriginBlock, PlacedPoolBlock, RegionBlock
from orrery.scenario.fleet.ways import names_of, numbers_of
from orrery.scenario.schema import Scenario

MOST = 64
"""Regions and origins of a fleet."""

EVERYWHERE = "everywhere"
"""The origin of a fleet in one region of which nobody says whence its requests come."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolInputs:
    """A pool as it was written, and the deployment's settings with those of the pool on top."""

    block: PlacedPoolBlock
    scenario: Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Regions and origins by name, and pools that each stand in a region; no regions where nobody writes any."""

    regions: tuple[RegionBlock, ...]
    origins: tuple[OriginBlock, ...]
    pools: tuple[PoolInputs, ...]


def placed(
    top: FleetTop,
    regions: tuple[RegionBlock, ...],
    origins: tuple[OriginBlock, ...],
    pools: tuple[PoolInputs, ...],
    *,
    has_pools: bool,
) -> Placed:
    """Put pools into regions: without a [[pool]] there is one in each."""
    regions, origins = _regions(top, regions), _origins(top, origins)
    if not regions:
        _refuse_without_regions(top, origins, pools)
        return Placed(regions=(), origins=(), pools=pools)
    first = regions[0]
    if not origins:
        if len(regions) > 1:
            raise ScenarioError(
                "origin: there are several regions, and nothing says where requests come from; write [[origin]] with "
                'name and share, or origins = "uksouth=0.6,eastus=0.4".'
            )
        origins = (OriginBlock(name=EVERYWHERE, rtt_ms=f"{first.name}=0"),)
    if not has_pools:
        block, scenario = pools[0].block, pools[0].scenario
        pools = tuple(
            PoolInputs(block=block.model_copy(update={"name": r.name, "region": r.name}), scenario=scenario)
            for r in regions
        )
    found = tuple(_in_region(p, k, regions) for k, p in enumerate(pools, start=1))
    empty = [r.name for r in regions if all(p.block.region != r.name for p in found)]
    if empty:
        raise ScenarioError(f'region {empty[0]}: no pool stands there; write region = "{empty[0]}" in a [[pool]].')
    _check_zones(top, regions, found)
    return Placed(regions=regions, origins=origins, pools=found)


def _regions(top: FleetTop, written: tuple[RegionBlock, ...]) -> tuple[RegionBlock, ...]:
    if top.regions is not None and written:
        raise ScenarioError("regions: there are [[region]] tables already; keep one of both.")
    found = tuple(RegionBlock(place=get_place(name).name) for name in names_of(top.regions)) or written
    return cast("tuple[RegionBlock, ...]", _named("region", found))


def _origins(top: FleetTop, written: tuple[OriginBlock, ...]) -> tuple[OriginBlock, ...]:
    if top.origins is not None and written:
        raise ScenarioError("origins: there are [[origin]] tables already; keep one of both.")
    text = top.origins or ""
    shares = numbers_of("origins", text, "uksouth=0.6,eastus=0.4") if "=" in text else {}
    if over := [name for name, share in shares.items() if share > 1.0]:
        raise ScenarioError(f"origins: {over[0]}={shares[over[0]]:g}; write shares that add up to 1.")
    places = tuple(shares) or names_of(text)
    found = tuple(OriginBlock(name=name, place=get_place(name).name, share=shares.get(name)) for name in places)
    return cast("tuple[OriginBlock, ...]", _named("origin", found or written))


def _named(kind: str, blocks: Sequence[RegionBlock] | Sequence[OriginBlock]) -> tuple[RegionBlock | OriginBlock, ...]:
    """Blocks that each have a name, their place's where they have none of their own."""
    found: list[RegionBlock | OriginBlock] = []
    for k, block in enumerate(blocks, start=1):
        name = block.name or block.place
        if name is None:
            raise ScenarioError(f'[[{kind}]] {k}: name is missing; write name = "eu", or place = "westeurope".')
        if set(name) & set(",=:/"):
            raise ScenarioError(f"[[{kind}]] {k}: name = {name!r}; write it without commas, =, : and /.")
        if any(name == other.name for other in found):
            raise ScenarioError(f"{kind}: {name!r} is there twice; give each a name of its own.")
        found.append(block.model_copy(update={"name": name}))
    if len(found) > MOST:
        raise ScenarioError(f"{kind}: {len(found)} are more than a fleet has; write at most {MOST}.")
    return tuple(found)


def _refuse_without_regions(top: FleetTop, origins: tuple[OriginBlock, ...], pools: tuple[PoolInputs, ...]) -> None:
    given = [s.name for s in ROUTING_SETTINGS if getattr(top, s.name) not in (None, ())]
    given += ["origin"] if origins else []
    given += ["pool: region" for p in pools if p.block.region is not None]
    if given:
        raise ScenarioError(f'{given[0]}: there are no regions; write [[region]], or regions = "westeurope,eastus".')


def _in_region(pool: PoolInputs, number: int, regions: tuple[RegionBlock, ...]) -> PoolInputs:
    """A pool with its region: the only one where it says none."""
    names = [str(r.name) for r in regions]
    name = pool.block.region or (names[0] if len(names) == 1 else None)
    label = pool.block.name or number
    if name is None:
        raise ScenarioError(f'pool {label}: stands in no region; write region = "{names[0]}".')
    if name not in names:
        near = nearest(name, names, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"the regions are {', '.join(names)}."
        raise ScenarioError(f"pool {label}: there is no region {name!r}; {hint}")
    return replace(pool, block=pool.block.model_copy(update={"region": name}))


def zones_in(top: FleetTop, block: PlacedPoolBlock, region: RegionBlock | None) -> tuple[str, ...]:
    """Zones of a pool: its own, the top's, or its region's; a region that names none is one zone."""
    own = names_of(block.zones) or names_of(top.zones)
    if region is None:
        return own or ("",)
    return own or names_of(region.zones) or (str(region.name),)


def _check_zones(top: FleetTop, regions: tuple[RegionBlock, ...], pools: tuple[PoolInputs, ...]) -> None:
    """Refuse a zone in two regions, and a pool in a zone that its region has not."""
    by_name = {r.name: r for r in regions}
    home: dict[str, str] = {}
    for region in regions:
        for zone in names_of(region.zones):
            if home.setdefault(zone, str(region.name)) != region.name:
                raise ScenarioError(f"zone {zone!r} is in regions {home[zone]} and {region.name}; a zone is in one.")
    for pool in pools:
        region = by_name[pool.block.region]
        for zone in zones_in(top, pool.block, region):
            if names_of(region.zones) and zone not in names_of(region.zones):
                raise ScenarioError(
                    f"pool {pool.block.name}: zone {zone!r} is not in region {region.name}, which has {region.zones}."
                )
            if home.setdefault(zone, str(region.name)) != region.name:
                raise ScenarioError(f"zone {zone!r} is in regions {home[zone]} and {region.name}; a zone is in one.")
