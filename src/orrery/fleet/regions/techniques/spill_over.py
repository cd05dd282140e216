"""Spill-over: the nearest region, and the next one while it is full."""

from dataclasses import dataclass

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.fleet.regions.routing import RegionCosts, RegionView


@dataclass(frozen=True, slots=True, kw_only=True)
class SpillOverKnobs:
    """Load at which a region is full, as a part of what its replicas carry within the limits."""

    full_ratio: float = 1.0

    def __post_init__(self) -> None:
        check_above(self, "full_ratio", 0.0)


def rule(view: RegionView, knobs: SpillOverKnobs) -> RegionCosts:
    """The round trip is the cost; beyond a replica's capacity the next nearest region with room takes the request."""
    return RegionCosts(cost_ratio=view.round_trip_s, full_requests=knobs.full_ratio * view.capacity_requests)


TECHNIQUE = Technique(
    name="spill-over",
    extension_point="fleet.region_router",
    rule=rule,
    knobs=SpillOverKnobs,
    gains="One region's peak is served by another one's night: fewer replicas than each region for itself.",
    costs="Who spills over waits for the longer way, and finds no cache of an earlier turn.",
    claims=("google-cloud-load-balancing-waterfall",),
)
