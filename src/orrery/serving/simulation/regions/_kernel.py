"""Regions of a service: which one a new request goes to, and how long it is on the way.

A request has an origin. Every so often the origin's row of ``cost`` (or of ``weight``) is written anew by whoever
routes between regions; what is decided here, request by request, is what depends on the load of the moment.
"""

from typing import NamedTuple

import numpy as np

from orrery.base.compiled import Floats, Floats2, Ints

LAST_RESORT = 1e300
"""Costs from here on are of regions that take requests only where no other one is up, full ones included."""


class Regions(NamedTuple):
    """Regions of a run; no columns where a service stands in none."""

    lane_region: Ints  # by lane
    replicas: Ints  # by region: replicas that take new requests; 0: who may go nowhere else waits there
    arrived: Ints  # by region: requests that have come to its queues
    reach_s: Floats2  # (origin, region): from the client to the region
    back_s: Floats2  # and from it to the client
    cost: Floats2  # (origin, region): requests go where it is lowest; infinite: not allowed
    weight: Floats2  # (origin, region): parts of the requests; where all are 0 the cost decides
    credit: Floats2  # (origin, region): what the weights owe each region
    full_requests: Floats  # by region: unfinished requests a replica at which it is full
    loads: Floats  # by region, scratch: unfinished requests a replica


def weighted_region(r: Regions, origin: int) -> int:
    """Region whose turn it is, each by its weight, evenly interleaved (smooth weighted round robin); -1: no weights."""
    best, total = -1, 0.0
    for k in range(r.weight.shape[1]):
        if r.weight[origin, k] > 0.0 and r.replicas[k] > 0:
            r.credit[origin, k] += r.weight[origin, k]
            total += r.weight[origin, k]
            if best < 0 or r.credit[origin, k] > r.credit[origin, best]:
                best = k
    if best >= 0:
        r.credit[origin, best] -= total
    return best


def cheapest_region(r: Regions, origin: int) -> int:
    """Allowed region of least cost, the least loaded of equals: of those with room; else, by load, of those that are
    full; else of those of last resort; else of those where no replica serves. -1: none is allowed."""
    best, best_rank = -1, 0
    for k in range(r.cost.shape[1]):
        if r.cost[origin, k] == np.inf:
            continue
        rank = 0
        if r.replicas[k] == 0:
            rank = 3
        elif r.cost[origin, k] >= LAST_RESORT:
            rank = 2
        elif r.loads[k] >= r.full_requests[k]:
            rank = 1
        if best < 0 or rank < best_rank or (rank == best_rank and _is_better(r, origin, k, best, rank == 1)):
            best, best_rank = k, rank
    return best


def _is_better(r: Regions, origin: int, k: int, other: int, by_load: bool) -> bool:
    """Whether a region comes before another one: by cost, then by load; by load first where both are full."""
    if by_load and r.loads[k] != r.loads[other]:
        return r.loads[k] < r.loads[other]
    if r.cost[origin, k] != r.cost[origin, other]:
        return r.cost[origin, k] < r.cost[origin, other]
    return r.loads[k] < r.loads[other]


def has_open(r: Regions, origin: int) -> bool:
    """Whether some region that the origin may go to takes requests."""
    is_open = False
    for k in range(r.cost.shape[1]):
        is_open |= r.cost[origin, k] < np.inf and r.replicas[k] > 0
    return is_open
