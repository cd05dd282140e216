"""KEDA on a queue's length: waiting requests over a threshold, from zero replicas on.

Between one and the most replicas the HorizontalPodAutoscaler decides with desired = ceil(waiting / threshold); KEDA
itself wakes the first replica as soon as a request waits at a poll, and removes the last one after a cooldown without.
"""

import math
from dataclasses import dataclass

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.fleet.service.signals import Signals
from orrery.fleet.service.techniques.hpa import HpaKnobs, stabilised


@dataclass(frozen=True, slots=True, kw_only=True)
class KedaKnobs:
    """Waiting requests a replica, the poll, and how long nobody may have come before the last replica goes."""

    threshold_requests: float = 5.0
    period_s: float = 30.0
    cooldown_s: float = 300.0
    down_window_s: float = 300.0

    def __post_init__(self) -> None:
        check_above(self, "threshold_requests", 0.0)
        check_above(self, "period_s", 0.0)


def rule(signals: Signals, knobs: KedaKnobs) -> float:
    """Return the number of replicas that should run."""
    now = signals.now
    if now.in_flight or now.arrivals:
        signals.state["active_s"] = now.now_s
    desired = float(math.ceil(now.waiting / knobs.threshold_requests - 1e-9))
    found = stabilised(signals, max(1.0, desired), HpaKnobs(down_window_s=knobs.down_window_s))
    if now.now_s - signals.state.get("active_s", 0.0) < knobs.cooldown_s and now.serving + now.starting > 0:
        return max(1.0, found)
    return max(1.0, found) if now.in_flight else 0.0


TECHNIQUE = Technique(
    name="keda-queue",
    extension_point="fleet.autoscaler",
    rule=rule,
    knobs=KedaKnobs,
    gains="It reads the queue itself, and an idle service costs nothing.",
    costs="A queue must have formed first; the first request after a pause waits for a whole cold start.",
    claims=("keda-scaledobject",),
)
