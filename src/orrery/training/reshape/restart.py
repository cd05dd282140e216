"""After nodes are lost: reshape and go on with fewer, or wait until they are repaired.

Seconds of full-speed training lost, for a repair that takes R and a share f of the speed that goes with the nodes:

    waiting  = R + load
    elastic  = reshape + f (R - reshape) + back

``back`` is what returning to the full layout costs once the repair is done: save, convert, load. Where R is shorter
than the reshaping, nothing is trained in between. Elastic wins from R = reshape + (back - load) / (1 - f) on.
"""

import math
from dataclasses import dataclass

from orrery.base.errors import ScenarioError


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """One failure and the ways out of it."""

    repair_s: float
    remaining_frac: float  # of full speed, under the best layout of the nodes that are left
    load_s: float  # the old layout's own checkpoint, on all nodes
    reshape_s: float  # convert and load on the nodes that are left
    back_s: float  # save, convert and load to the full layout again

    def __post_init__(self) -> None:
        if not 0.0 <= self.remaining_frac <= 1.0 or min(self.repair_s, self.load_s, self.reshape_s, self.back_s) < 0.0:
            raise ScenarioError(f"outage: {self}; write times from 0 and remaining_frac in [0, 1].")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Loss of each way, in seconds of training at full speed."""

    waiting_lost_s: float
    elastic_lost_s: float
    break_even_s: float  # repairs that take longer are better not waited for; inf where fewer nodes do not train

    @property
    def is_elastic_better(self) -> bool:
        """Whether to reshape and go on."""
        return self.elastic_lost_s < self.waiting_lost_s


def recovery(outage: Outage) -> Recovery:
    """Both ways, and the repair time from which on going on is better."""
    speed = outage.remaining_frac
    turn_s = outage.reshape_s + (outage.back_s - outage.load_s) / speed if speed else math.inf
    slow_s = max(0.0, outage.repair_s - outage.reshape_s)  # training on fewer nodes, until the repair
    return Recovery(
        waiting_lost_s=outage.repair_s + outage.load_s,
        elastic_lost_s=outage.reshape_s + (1.0 - speed) * slow_s + outage.back_s,
        break_even_s=turn_s,
    )
