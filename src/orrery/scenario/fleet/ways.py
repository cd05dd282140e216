"""Where regions and origins lie, and the round trips between them: given, published, or from the distance."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.units import text
from orrery.catalog.places import detour_ratio, get_place, least_round_trip_s, published_round_trip_s
from orrery.fleet.regions.geography import Place
from orrery.fleet.regions.routing import Floats
from orrery.scenario.fleet.blocks import OriginBlock, RegionBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Round trips, and how they are known."""

    round_trip_s: Floats  # (origin, region)
    notes: tuple[str, ...]


def names_of(written: str | None) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(word for text in (written or "").split(",") if (word := text.strip()))


def numbers_of(where: str, written: str, example: str) -> dict[str, float]:
    """Numbers by name, as in ``eu=12,us=90``."""
    found: dict[str, float] = {}
    for word in filter(None, (w.strip() for w in written.split(","))):
        name, equals, value = word.partition("=")
        try:
            number = float(value)
        except ValueError:
            number = -1.0
        if not equals or not name.strip() or not 0.0 <= number < 1e12:
            raise ScenarioError(f"{where}: got {word!r}; write names with numbers from 0, such as {example}.")
        if found.setdefault(name.strip(), number) != number:
            raise ScenarioError(f"{where}: {name.strip()!r} is there twice; keep one.")
    return found


def utc_offset_s(block: RegionBlock | OriginBlock) -> float:
    """Time that a clock is ahead of UTC: as it is written, else as at its place, else none."""
    if block.utc_offset is not None:
        if block.utc_offset % 0.25:
            raise ScenarioError(f"{block.name}: utc_offset = {block.utc_offset:g}; write hours in steps of 0.25.")
        return 3600.0 * block.utc_offset
    return get_place(block.place).utc_offset_s if block.place else 0.0


def place_of(block: RegionBlock | OriginBlock) -> Place | None:
    """Latitude and longitude; None where nothing says."""
    if (block.latitude is None) != (block.longitude is None):
        raise ScenarioError(f"{block.name}: latitude and longitude belong together; write both, or place.")
    if block.latitude is not None and block.longitude is not None:
        return block.latitude, block.longitude
    return get_place(block.place).at if block.place else None


def ways_of(origins: tuple[OriginBlock, ...], regions: tuple[RegionBlock, ...]) -> Ways:
    """The round trip from every origin to every region."""
    names = [r.name for r in regions]
    table, notes = np.zeros((len(origins), len(regions))), dict[str, None]()
    for i, origin in enumerate(origins):
        given = numbers_of(f"origin {origin.name}: rtt_ms", origin.rtt_ms or "", "eu=12,us=90")
        if unknown := [name for name in given if name not in names]:
            raise ScenarioError(
                f"origin {origin.name}: rtt_ms: there is no region {unknown[0]!r}; the regions are "
                f"{', '.join(map(str, names))}."
            )
        for k, region in enumerate(regions):
            table[i, k], note = _round_trip_s(origin, region, given)
            if note:
                notes[note] = None
    return Ways(round_trip_s=table, notes=tuple(notes))


def between_regions_s(one: RegionBlock, other: RegionBlock, stated_ms: float | None) -> tuple[float, str]:
    """The round trip between two regions, and a note on it where the user has not stated it."""
    if stated_ms is not None:
        if (least_s := _least_s(one, other)) is not None and stated_ms / 1e3 < least_s * (1.0 - 1e-9):
            raise ScenarioError(
                f"region_rtt_ms = {stated_ms:g} is faster than light between {one.name} and {other.name}: write "
                f"{least_s * 1e3:.3g} or more, or other places."
            )
        return stated_ms / 1e3, ""
    if (found := _known_s(one, other, "region_rtt_ms")) is None:
        raise ScenarioError(
            f"region_rtt_ms: the round trip between {one.name} and {other.name} is not known; write region_rtt_ms = "
            "80, or the place of both (orrery show places)."
        )
    return found


def _least_s(one: RegionBlock | OriginBlock, other: RegionBlock) -> float | None:
    """The time of light there and back; None where a place is not known."""
    here, there = place_of(one), place_of(other)
    return least_round_trip_s(here, there) if here is not None and there is not None else None


def _known_s(one: RegionBlock | OriginBlock, other: RegionBlock, name: str) -> tuple[float, str] | None:
    """A round trip as it is published, else from the distance, with a note; None where nothing says."""
    if one.place and other.place:
        return published_round_trip_s(one.place, other.place), (
            f"{name}: medians between places as a cloud publishes them for July 2026 (orrery show places); the way "
            "from a user to the nearest of its sites is not in them"
        )
    if (least_s := _least_s(one, other)) is not None:
        return detour_ratio() * least_s, (
            f"{name}: {detour_ratio():.3g} times the light in a straight fibre, the median of published round trips"
        )
    return None


def _round_trip_s(origin: OriginBlock, region: RegionBlock, given: Mapping[str, float]) -> tuple[float, str]:
    """One round trip, and a note on it where the user has not stated it."""
    least_s = _least_s(origin, region)
    if (stated := given.get(str(region.name))) is not None:
        if least_s is not None and stated / 1e3 < least_s * (1.0 - 1e-9):
            raise ScenarioError(
                f"origin {origin.name}: rtt_ms: {region.name}={stated:g} is faster than light: a straight fibre takes "
                f"{text(least_s, 's')} there and back; write {least_s * 1e3:.3g} or more, or other places."
            )
        return stated / 1e3, ""
    if (found := _known_s(origin, region, "rtt_ms")) is not None:
        return found
    raise ScenarioError(
        f'origin {origin.name}: rtt_ms: the round trip to region {region.name} is not known; write rtt_ms = "'
        f'{region.name}=90", or the place of both (orrery show places).'
    )
