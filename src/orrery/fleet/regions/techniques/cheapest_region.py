"""Cheapest: where a request costs least at this hour's price, of the regions whose first token comes in time."""

from orrery.base.technique import Technique
from orrery.fleet.regions.routing import RegionCosts, RegionView, within_limit
from orrery.fleet.regions.techniques.spill_over import SpillOverKnobs


def rule(view: RegionView, knobs: SpillOverKnobs) -> RegionCosts:
    """Rent at capacity and electricity of a request are the cost; full regions pass requests on."""
    return RegionCosts(
        cost_ratio=within_limit(view, view.usd_per_request), full_requests=knobs.full_ratio * view.capacity_requests
    )


TECHNIQUE = Technique(
    name="cheapest-region",
    word="cheapest",
    extension_point="fleet.region_router",
    rule=rule,
    knobs=SpillOverKnobs,
    gains="Work follows low prices around the earth.",
    costs="Longer ways, up to the limit on TTFT; replicas that wait elsewhere are still paid for.",
    claims=("qureshi-2009",),
)
