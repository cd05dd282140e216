"""A planner on TTFT and TPOT: the rate over what a replica carries within the limits, corrected by what was measured.

replicas = ceil(rate x correction / capacity). The capacity at the limits is predicted beforehand; the correction is the
measured 90th percentile of TTFT and TPOT over their limits, the larger of the two, as it was when requests last ended.
"""

import math
from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.fleet.service.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerKnobs:
    """Seconds between two decisions, the percentile that must hold, and how full a replica may be planned."""

    period_s: float = 60.0
    percentile_frac: float = 0.9
    headroom_frac: float = 0.8
    most_correction_ratio: float = 2.0
    down_window_s: float = 300.0

    def __post_init__(self) -> None:
        check_above(self, "period_s", 0.0)
        check_range(self, "percentile_frac", 0.01, 0.999)
        check_range(self, "headroom_frac", 0.01, 1.0)
        check_range(self, "most_correction_ratio", 1.0, 100.0)


def _correction(signals: Signals, knobs: PlannerKnobs) -> float:
    """Ratio of the measured latencies to their limits; 1 where they are within."""
    ttft_s, tpot_s = signals.recent(signals.now.now_s - max(knobs.period_s, 60.0))
    found = [
        float(np.quantile(values, knobs.percentile_frac)) / limit_s
        for name, values in (("ttft", ttft_s), ("tpot", tpot_s))
        if (limit_s := signals.limits_s.get(name)) and values.size
    ]
    return min(max([1.0, *found]), knobs.most_correction_ratio)


def rule(signals: Signals, knobs: PlannerKnobs) -> float:
    """Return the number of replicas that should run."""
    now = signals.now
    if signals.capacity_requests_per_s <= 0.0:
        return float(now.serving + now.starting)
    rate = signals.mean(lambda s: s.rate_per_s, max(knobs.period_s, 60.0))
    backlog = now.waiting / max(knobs.period_s, 60.0)
    demand = (rate + backlog) * _correction(signals, knobs)
    desired = float(math.ceil(demand / (signals.capacity_requests_per_s * knobs.headroom_frac) - 1e-9))
    if now.in_flight:
        desired = max(1.0, desired)
    signals.remember(desired, knobs.down_window_s)
    current = now.serving + now.starting
    return desired if desired >= current else min(float(current), signals.extreme(max, knobs.down_window_s))


TECHNIQUE = Technique(
    name="slo-planner",
    extension_point="fleet.autoscaler",
    rule=rule,
    knobs=PlannerKnobs,
    gains="It aims at the latencies themselves, and knows beforehand what a replica carries.",
    costs="Needs a prediction or a profile of a replica, and limits on TTFT or TPOT.",
    claims=("dynamo-planner",),
)
