"""Nearest: the region of the shortest round trip, whatever its load."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.fleet.regions.routing import RegionCosts, RegionView, never_full


def rule(view: RegionView, knobs: NoKnobs) -> RegionCosts:
    """The round trip is the cost, and no region is ever full."""
    return RegionCosts(cost_ratio=view.round_trip_s, full_requests=never_full(view))


TECHNIQUE = Technique(
    name="nearest",
    extension_point="fleet.region_router",
    rule=rule,
    gains="The shortest way for every user, and a region's caches see the same users again.",
    costs="A region at its peak queues while others idle; it costs what the nearest region costs.",
    claims=("aws-route53-latency-routing",),
)
