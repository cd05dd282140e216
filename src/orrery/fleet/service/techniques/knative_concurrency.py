"""Knative's pod autoscaler: concurrency averaged over a stable window, and over a panic window in a burst.

desired = ceil(mean requests in flight / (target x utilisation)). When the panic window's figure is twice the replicas
that serve, the larger one counts and nothing is removed until the burst has been over for a stable window.
"""

import math
from dataclasses import dataclass

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.fleet.service.signals import Sample, Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class KnativeKnobs:
    """Requests in flight at a replica, how full that may be, the windows, and how fast replicas may change."""

    target_requests: float = 100.0
    utilization_frac: float = 0.7
    period_s: float = 2.0
    stable_window_s: float = 60.0
    panic_window_frac: float = 0.1
    panic_threshold_ratio: float = 2.0
    max_up_ratio: float = 1000.0
    max_down_ratio: float = 2.0
    zero_grace_s: float = 30.0

    def __post_init__(self) -> None:
        for name in ("target_requests", "period_s", "stable_window_s", "max_up_ratio", "max_down_ratio"):
            check_above(self, name, 0.0)
        check_range(self, "utilization_frac", 0.01, 1.0)
        check_range(self, "panic_window_frac", 0.01, 1.0)


def _in_flight(sample: Sample) -> float:
    return float(sample.in_flight)


def rule(signals: Signals, knobs: KnativeKnobs) -> float:
    """Return the number of replicas that should run."""
    now, each = signals.now, knobs.target_requests * knobs.utilization_frac
    serving = max(1, now.serving)
    stable = signals.mean(_in_flight, knobs.stable_window_s) / each
    panic = signals.mean(_in_flight, knobs.stable_window_s * knobs.panic_window_frac) / each
    low, high = math.floor(serving / knobs.max_down_ratio), math.ceil(serving * knobs.max_up_ratio)
    desired = float(min(max(math.ceil(stable - 1e-9), low), high))
    burst = float(min(max(math.ceil(panic - 1e-9), low), high))
    if burst >= knobs.panic_threshold_ratio * serving:
        signals.state["panic_s"] = now.now_s
    if now.now_s - signals.state.get("panic_s", -math.inf) < knobs.stable_window_s:
        most = max(desired, burst, signals.state.get("most", 0.0), float(now.serving))
        signals.state["most"] = most
        return most
    signals.state["most"] = 0.0
    if stable > 0.0 or now.in_flight:
        signals.state["active_s"] = now.now_s
        return max(1.0, desired)
    return 0.0 if now.now_s - signals.state.get("active_s", 0.0) >= knobs.zero_grace_s else 1.0


TECHNIQUE = Technique(
    name="knative-concurrency",
    extension_point="fleet.autoscaler",
    rule=rule,
    knobs=KnativeKnobs,
    gains="Looks every two seconds, and a burst is answered within six.",
    costs="Counts requests, not their tokens: long prompts look as light as short ones.",
    claims=("knative-kpa",),
)
