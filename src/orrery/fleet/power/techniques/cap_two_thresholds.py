"""Two thresholds: work of low priority is slowed down first, that of high priority only when this is not enough."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.fleet.power.capping import Clocks, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoThresholdKnobs:
    """Where the two caps start, how far below each ends, and the clocks of low and high priority."""

    first_frac: float = 0.80
    second_frac: float = 0.89
    release_frac: float = 0.05
    low_first_ratio: float = 0.904  # 1275 of 1410 MHz
    low_second_ratio: float = 0.787  # 1110 of 1410 MHz
    high_second_ratio: float = 0.926  # 1305 of 1410 MHz

    def __post_init__(self) -> None:
        for name in ("first_frac", "second_frac", "release_frac"):
            check_range(self, name, 0.0, 1.0)
        for name in ("low_first_ratio", "low_second_ratio", "high_second_ratio"):
            check_range(self, name, 0.05, 1.0)


def rule(reading: Reading, knobs: TwoThresholdKnobs) -> Clocks:
    """Above the first: low priority a little; above the second: low more, high a little. Each ends further below."""
    is_first, is_second = reading.clocks.low_ratio < 1.0, reading.clocks.high_ratio < 1.0
    if reading.drawn_frac > knobs.second_frac - knobs.release_frac * is_second:
        return Clocks(low_ratio=knobs.low_second_ratio, high_ratio=knobs.high_second_ratio)
    if reading.drawn_frac > knobs.first_frac - knobs.release_frac * is_first:
        return Clocks(low_ratio=knobs.low_first_ratio, high_ratio=1.0)
    return Clocks()


TECHNIQUE = Technique(
    name="cap-two-thresholds",
    word="two-thresholds",
    extension_point="fleet.power_cap",
    rule=rule,
    knobs=TwoThresholdKnobs,
    gains="More servers under one breaker while work of high priority hardly notices.",
    costs="Work of low priority takes longer whenever the row is busy; caps come late by the telemetry's delay.",
    claims=("polca-2023",),
)
