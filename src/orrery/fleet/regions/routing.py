"""Interface of a router between regions (extension point ``fleet.region_router``): what it sees each hour, its answer.

A rule answers with the cost of every region for every origin, as ``RegionView`` shows it, and with the load at which a
region is full. Each request then goes to the region of least cost that is not full (``serving.simulation.regions``).
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from orrery.serving.simulation.regions._kernel import LAST_RESORT

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionView:
    """Regions as they are in this hour. Tables have a row an origin and a column a region."""

    origins: tuple[str, ...]
    regions: tuple[str, ...]
    allowed: Flags  # (origin, region)
    round_trip_s: Floats  # (origin, region)
    ttft_s: Floats  # (origin, region): of a request alone, as its user sees it
    ttft_limit_s: float  # infinite without an SLO on TTFT
    usd_per_request: Floats  # by region: rent of its replicas at their capacity, and electricity at this hour's price
    carbon_g_per_request: Floats  # by region, at this hour's carbon
    capacity_requests: Floats  # by region: requests in flight of a replica at its capacity


def _no_weights() -> Floats:
    return np.zeros((0, 0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RegionCosts:
    """Answer of a rule until the next hour."""

    cost_ratio: Floats  # (origin, region), of any unit: requests go where it is lowest; infinite: not there
    full_requests: Floats  # by region: unfinished requests a replica at which it is full
    weight_ratio: Floats = field(default_factory=_no_weights)  # (origin, region): parts of the requests; empty: by cost


def never_full(view: RegionView) -> Floats:
    """Limits of regions that take any load."""
    return np.full(len(view.regions), np.inf)


def within_limit(view: RegionView, cost: Floats) -> Floats:
    """A cost by region as a table for all origins, in which regions that would miss the limit on TTFT even without load
    are a last resort, the nearest first."""
    table = np.broadcast_to(cost, view.allowed.shape)
    return np.where(view.ttft_s <= view.ttft_limit_s, table, LAST_RESORT * (1.0 + view.ttft_s))
