"""Kubernetes' HorizontalPodAutoscaler: the ratio of a metric to its target, held back by stabilisation windows.

desired = ceil(replicas x metric / target), and no change while the ratio is within the tolerance of 1. Of the
recommendations of the last minutes the highest is taken before replicas are removed. A sync adds at most four replicas
or as many as there are, whichever is more.
"""

import math
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.fleet.service.signals import Signals

METRICS = ("in-flight", "waiting", "busy", "kv", "ttft", "tpot")
QUANTILE_FRAC = 0.9
"""Quantile of the last minute's requests that ``ttft`` and ``tpot`` take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HpaKnobs:
    """The metric of a replica (requests in flight or waiting, busy or cache share; or the 90th percentile of TTFT or
    TPOT, ms) and its target; windows in seconds."""

    metric: str = "in-flight"
    target: float = 32.0
    tolerance_frac: float = 0.1
    period_s: float = 15.0
    up_window_s: float = 0.0
    down_window_s: float = 300.0
    up_replicas: float = 4.0
    up_frac: float = 1.0
    down_frac: float = 1.0

    def __post_init__(self) -> None:
        if self.metric not in METRICS:
            raise ScenarioError(f"metric = {self.metric!r} in HpaKnobs; write one of {', '.join(METRICS)}.")
        check_above(self, "target", 0.0)
        check_above(self, "period_s", 0.0)
        check_range(self, "tolerance_frac", 0.0, 1.0)


def ratio(signals: Signals, knobs: HpaKnobs) -> float:
    """The metric's mean over the serving replicas as a part of its target."""
    now = signals.now
    if knobs.metric in ("ttft", "tpot"):
        return _latency_ms(signals, knobs) / knobs.target
    each = {
        "in-flight": now.in_flight / max(1, now.serving),
        "waiting": now.waiting / max(1, now.serving),
        "busy": now.busy_frac,
        "kv": now.kv_frac,
    }[knobs.metric]
    return each / knobs.target


def _latency_ms(signals: Signals, knobs: HpaKnobs) -> float:
    """The measured latency of the last minute; 0 where no request says any."""
    found = signals.recent(signals.now.now_s - max(knobs.period_s, 60.0))[knobs.metric == "tpot"]
    return 1e3 * float(np.quantile(found, QUANTILE_FRAC)) if found.size else 0.0


def stabilised(signals: Signals, desired: float, knobs: HpaKnobs) -> float:
    """``desired`` after both windows and the limits of one step."""
    now = signals.now
    current = now.serving + now.starting
    signals.remember(desired, max(knobs.up_window_s, knobs.down_window_s))
    if desired > current:
        held = max(current, signals.extreme(min, knobs.up_window_s))
        return min(held, max(current + knobs.up_replicas, current * (1.0 + knobs.up_frac)))
    held = min(current, signals.extreme(max, knobs.down_window_s))
    return max(held, math.floor(current * (1.0 - knobs.down_frac)))


def rule(signals: Signals, knobs: HpaKnobs) -> float:
    """Return the number of replicas that should run."""
    now = signals.now
    current = now.serving + now.starting
    found = ratio(signals, knobs)
    if now.serving == 0:
        desired = float(max(current, 1 if now.in_flight else 0))
    elif abs(found - 1.0) <= knobs.tolerance_frac:
        desired = float(current)
    else:
        desired = float(math.ceil(now.serving * found - 1e-9))
        if desired > now.serving:
            desired = max(desired, float(current))  # those that start count as there, without load
    return stabilised(signals, desired, knobs)


TECHNIQUE = Technique(
    name="hpa",
    extension_point="fleet.autoscaler",
    rule=rule,
    knobs=HpaKnobs,
    gains="The rule of every Kubernetes cluster: any metric, no forecast, calm by its windows.",
    costs="It acts after the load has come, and a cold start later it helps.",
    claims=("kubernetes-hpa",),
)
