"""Links between regions over which caches move: their rate as it is stated, their round trips given or as published."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.fleet.regions.moves import WAYS, WideArea
from orrery.scenario.fleet.blocks import FleetTop, RegionBlock
from orrery.scenario.fleet.ways import between_regions_s
from orrery.serving.requests import Requests

BYTES_PER_GB = 1e9
BESIDE = ("region_link_bytes_per_s", "region_rtt_ms", "egress_usd_per_gb")


def wide_area_of(
    top: FleetTop, regions: tuple[RegionBlock, ...], requests: Requests
) -> tuple[WideArea | None, tuple[str, ...]]:
    """The links, with notes on what was taken or has no effect; None where no cache moves."""
    way = (top.cache_moves or WAYS[0]).strip()
    if way not in WAYS:
        raise ScenarioError(f"cache_moves: got {way[:40]!r}; write {', '.join(WAYS)}.")
    if way == WAYS[0]:
        given = [name for name in BESIDE if getattr(top, name) is not None]
        return None, tuple(f"{name}: no effect without cache_moves = sooner or always" for name in given)
    if not top.region_link_bytes_per_s:
        raise ScenarioError("cache_moves: over which link? Write region_link_bytes_per_s = 1.25e9.")
    if len(regions) < 2:
        raise ScenarioError("cache_moves: caches move between regions; write two [[region]] tables or more.")
    trips, notes = np.zeros((len(regions), len(regions))), dict[str, None]()
    for i, one in enumerate(regions):
        for k, other in enumerate(regions):
            if i != k:
                trips[i, k], note = between_regions_s(one, other, top.region_rtt_ms)
                notes |= {note: None} if note else {}
    if not (requests.after.size and (requests.after >= 0).any()):
        notes["cache_moves: no effect: no request follows another one; write turns = 4"] = None
    if others := [name for name in ("steady", "survive") if getattr(top, name)]:
        notes[f"cache_moves: no effect with {others[0]}, which tells of no single request; leave one of both out"] = (
            None
        )
    area = WideArea(
        way=way,
        bytes_per_s=top.region_link_bytes_per_s,
        round_trip_s=trips,
        usd_per_byte=None if top.egress_usd_per_gb is None else top.egress_usd_per_gb / BYTES_PER_GB,
    )
    return area, tuple(notes)
