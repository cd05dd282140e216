"""Requests as a flow: the rate from each origin to each region in a steady hour.

Regions of equal cost share a flow by their room; one that is full passes the rest on, by cost; what finds no room
anywhere is spread by capacity. Weights split a flow in their parts.
"""

import numpy as np

from orrery.fleet.regions.routing import Floats, RegionCosts
from orrery.serving.simulation.regions._kernel import LAST_RESORT


def flows(found: RegionCosts, rates: Floats, limits: Floats, capacities: Floats) -> Floats:
    """Requests/s from every origin (row) to every region (column).

    ``limits`` are the requests/s at which each region is full, ``capacities`` what its replicas sustain.
    """
    table, room = np.zeros(found.cost_ratio.shape), limits.copy()
    for origin, rate in enumerate(rates.tolist()):
        weight = found.weight_ratio[origin] if found.weight_ratio.size else np.zeros(0)
        if weight.any():
            table[origin] = rate * weight / weight.sum()
            continue
        left = rate
        for group in _groups(found.cost_ratio[origin]):
            part = _filled(left, room[group], capacities[group])
            table[origin, group] += part
            room[group] -= part
            left -= float(part.sum())
            if left <= 1e-12 * max(rate, 1.0):
                break
        else:
            allowed = _first_choice(found.cost_ratio[origin])
            share = capacities * allowed
            table[origin] += left * share / share.sum() if share.any() else left * allowed / allowed.sum()
    return table


def _groups(cost: Floats) -> list[np.ndarray]:
    """Regions of equal cost, the cheapest first; those of last resort are in none."""
    usual = np.flatnonzero(cost < LAST_RESORT)
    return [usual[cost[usual] == value] for value in np.unique(cost[usual])]


def _first_choice(cost: Floats) -> Floats:
    """Regions that take what finds no room: all that are allowed, but those of last resort where there are others."""
    usual = cost < LAST_RESORT
    return (usual if usual.any() else np.isfinite(cost)).astype(np.float64)


def _filled(rate: float, room: Floats, capacities: Floats) -> Floats:
    """A flow over some regions in proportion to their capacity, each up to its room."""
    part, left = np.zeros(room.size), rate
    for _ in range(room.size):
        is_open = part < room
        share = np.where(is_open, np.maximum(capacities, 1e-12), 0.0)
        if left <= 0.0 or not is_open.any():
            break
        more = np.minimum(left * share / share.sum(), room - part)
        part, left = part + more, left - float(more.sum())
    return part
