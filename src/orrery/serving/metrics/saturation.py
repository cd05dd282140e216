"""Which limit a run reached first: the cache, the places in the batch, or the machines' time.

A bin of the timeline is at the limit of

``kv cache``                when somebody was preempted; or the cache is at least 95 % full on average; or requests wait
                            and one more sequence of mean size would not fit;
``batch slots``             when the mean number of running sequences is at least 95 % of machines x places in a batch;
``token budget / compute``  when on average a request or more waits for each machine, the machines are busy for at
                            least 95 % of the time, and neither of the above holds: steps are full or too slow for
                            the traffic.

"Requests wait" is a mean of at least one a machine. The first bin at any limit names it; a limit that is reached later
is a consequence. Without such a bin nothing saturated.
"""

from dataclasses import dataclass

import numpy as np

from orrery.serving.metrics.over_time import OverTime
from orrery.serving.simulation.result import Simulated

FULL_FRAC = 0.95
"""Means over a bin never reach the limit itself: slots and blocks stand empty between two steps."""

NOTHING = "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Saturated:
    """The first limit reached, and the start of the bin in which it was."""

    limit: str
    start_s: float | None  # None for nothing


def saturated_first(simulated: Simulated, over: OverTime) -> Saturated:
    """The first limit in the timeline ``over`` of ``simulated``."""
    machines = max(simulated.num_machines, 1)
    waits = over.waiting_requests >= machines
    sequence_frac = np.divide(
        over.kv_use_frac, over.running_requests, out=np.zeros_like(over.kv_use_frac), where=over.running_requests > 0
    )
    no_room = waits & (over.kv_use_frac + machines * sequence_frac > 1.0)
    at_limit = {
        "kv cache": (over.num_preemptions > 0) | (over.kv_use_frac >= FULL_FRAC) | no_room,
        "batch slots": (over.running_requests >= FULL_FRAC * machines * simulated.max_running) & (over.width_s > 0),
        "token budget / compute": waits & (over.busy_frac >= FULL_FRAC),
    }
    firsts = {name: int(np.argmax(is_at)) for name, is_at in at_limit.items() if is_at.any()}
    if not firsts:
        return Saturated(limit=NOTHING, start_s=None)
    limit = min(firsts, key=lambda name: firsts[name])  # of two in one bin the one named first
    return Saturated(limit=limit, start_s=float(over.start_s[firsts[limit]]))
