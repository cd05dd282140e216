"""Predictive: the rate of the same time a season ago where it was seen, else Holt's straight line, a cold start ahead.

Holt's linear trend: level l and slope b of the rate y, l' = a y + (1 - a)(l + b), b' = c (l' - l) + (1 - c) b; the
forecast for h periods ahead is l + h b. The larger of both forecasts, over what a replica carries, is what runs.
"""

import math
from dataclasses import dataclass

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.fleet.service.signals import Signals


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictiveKnobs:
    """The season that repeats, the trend's weights, how full a replica is planned, and the least time ahead."""

    period_s: float = 60.0
    season_s: float = 604800.0
    level_frac: float = 0.5
    trend_frac: float = 0.1
    headroom_frac: float = 0.8
    ahead_s: float = 60.0  # beside the cold start

    def __post_init__(self) -> None:
        check_above(self, "period_s", 0.0)
        check_above(self, "season_s", 0.0)
        for name in ("level_frac", "trend_frac"):
            check_range(self, name, 0.0, 1.0)
        check_range(self, "headroom_frac", 0.01, 1.0)


def _trend(signals: Signals, knobs: PredictiveKnobs, ahead_s: float) -> float:
    """Holt's forecast of the rate so many seconds ahead."""
    rate, state = signals.now.rate_per_s, signals.state
    if "level" not in state:
        state["level"], state["slope"] = rate, 0.0
    else:
        level = knobs.level_frac * rate + (1.0 - knobs.level_frac) * (state["level"] + state["slope"])
        state["slope"] = knobs.trend_frac * (level - state["level"]) + (1.0 - knobs.trend_frac) * state["slope"]
        state["level"] = level
    return max(0.0, state["level"] + state["slope"] * ahead_s / knobs.period_s)


def rule(signals: Signals, knobs: PredictiveKnobs) -> float:
    """Return the number of replicas that should run."""
    now = signals.now
    ahead_s = signals.cold_start_s + knobs.ahead_s
    trend = _trend(signals, knobs, ahead_s)
    season = signals.rate_before(knobs.season_s - ahead_s, 600.0)
    if signals.capacity_requests_per_s <= 0.0:
        return float(now.serving + now.starting)
    rate = trend if math.isnan(season) else max(season, signals.mean(lambda s: s.rate_per_s, 300.0))
    desired = math.ceil(rate / (signals.capacity_requests_per_s * knobs.headroom_frac) - 1e-9)
    return float(max(1, desired) if now.in_flight or now.arrivals else desired)


TECHNIQUE = Technique(
    name="predictive",
    extension_point="fleet.autoscaler",
    rule=rule,
    knobs=PredictiveKnobs,
    gains="Replicas are ready when the load comes, a cold start ahead.",
    costs="What never happened before comes as a surprise, and a season must have been seen.",
    claims=("holt-1957",),
)
