"""Least loaded: the region with the fewest unfinished requests for each of its replicas."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.fleet.regions.routing import RegionCosts, RegionView, never_full, within_limit


def rule(view: RegionView, knobs: NoKnobs) -> RegionCosts:
    """Regions within the limit on TTFT cost the same, so that the load decides."""
    return RegionCosts(cost_ratio=within_limit(view, np.zeros(len(view.regions))), full_requests=never_full(view))


TECHNIQUE = Technique(
    name="least-loaded-region",
    word="least-loaded",
    extension_point="fleet.region_router",
    rule=rule,
    gains="No region queues while another one has room.",
    costs="Most requests go the longer way, even when nobody is busy.",
    claims=("mitzenmacher-2001",),
)
