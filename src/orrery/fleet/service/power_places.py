"""Replicas, pool after pool: limits that each stands behind, its priority, and its draw at rest and at most."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.fleet.power.capping import Clocks
from orrery.fleet.service.power_readings import Flags, PowerCap
from orrery.fleet.service.setup import PoolTerms
from orrery.serving.requests import Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerPlaces:
    """All replicas that there may be, under the limits of a cap."""

    is_low: Flags
    is_behind: Flags  # (limits, replicas)
    rated_w: Floats
    standing_w: Floats  # idle devices, and the machines around them
    is_owned: Flags  # it draws its standing watts whether it runs or not

    def clocks(self, in_force: Sequence[Clocks]) -> Floats:
        """The clock of each replica: the lowest that the limits above it ask for."""
        found = np.ones(self.is_low.size)
        for is_behind, clocks in zip(self.is_behind, in_force, strict=True):
            target = np.where(self.is_low, clocks.low_ratio, clocks.high_ratio)
            found = np.where(is_behind, np.minimum(found, target), found)
        return found


def places_of(cap: PowerCap, terms: Sequence[PoolTerms]) -> PowerPlaces:
    """Places of the replicas of some pools: each pool's are dealt to its racks in turn."""
    numbered = [(t, k) for t in terms for k in range(t.replicas_max)]
    racks = [t.racks[k % len(t.racks)] for t, k in numbered]
    behind = [[limit.racks is None or rack in limit.racks for rack in racks] for limit in cap.limits]
    return PowerPlaces(
        is_low=np.array([_is_low(t.power_priority, k, cap) for t, k in numbered], np.bool_),
        is_behind=np.array(behind, np.bool_).reshape(len(cap.limits), len(numbered)),
        rated_w=np.array([t.rated_power_w for t, _ in numbered]),
        standing_w=np.array([t.idle_power_w + t.host_power_w for t, _ in numbered]),
        is_owned=np.array([t.purchase == "owned" for t, _ in numbered], np.bool_),
    )


def _is_low(priority: str, number: int, cap: PowerCap) -> bool:
    """Whether a replica is of low priority: as its pool says, else spread evenly over the pool."""
    if priority:
        return priority == "low"
    share = cap.low_priority_frac
    return int((number + 1) * share + 1e-9) > int(number * share + 1e-9)
