"""Cleanest: the region whose electricity emits least in this hour, where the first token still comes in time."""

from orrery.base.technique import Technique
from orrery.fleet.regions.routing import RegionCosts, RegionView, within_limit
from orrery.fleet.regions.techniques.spill_over import SpillOverKnobs


def rule(view: RegionView, knobs: SpillOverKnobs) -> RegionCosts:
    """CO2 of a request is the cost; full regions pass requests on."""
    return RegionCosts(
        cost_ratio=within_limit(view, view.carbon_g_per_request),
        full_requests=knobs.full_ratio * view.capacity_requests,
    )


TECHNIQUE = Technique(
    name="cleanest-region",
    word="cleanest",
    extension_point="fleet.region_router",
    rule=rule,
    knobs=SpillOverKnobs,
    gains="Work follows wind and sun around the earth.",
    costs="Longer ways, up to the limit on TTFT; idle power of replicas elsewhere is still drawn.",
    claims=("radovanovic-2021",),
)
