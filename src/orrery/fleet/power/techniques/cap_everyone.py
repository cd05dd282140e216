"""One threshold for all: above it every server lowers its clock, whatever it serves."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.fleet.power.capping import Clocks, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class EveryoneKnobs:
    """Where capping starts, how far below it ends, and the lowered clock."""

    threshold_frac: float = 0.89
    release_frac: float = 0.05
    clock_ratio: float = 0.787

    def __post_init__(self) -> None:
        check_range(self, "threshold_frac", 0.0, 1.0)
        check_range(self, "release_frac", 0.0, 1.0)
        check_range(self, "clock_ratio", 0.05, 1.0)


def rule(reading: Reading, knobs: EveryoneKnobs) -> Clocks:
    """Lowered above the threshold; full again once the draw is ``release_frac`` below it."""
    is_capped = reading.clocks.high_ratio < 1.0
    limit = knobs.threshold_frac - knobs.release_frac * is_capped
    ratio = knobs.clock_ratio if reading.drawn_frac > limit else 1.0
    return Clocks(low_ratio=ratio, high_ratio=ratio)


TECHNIQUE = Technique(
    name="cap-everyone",
    word="everyone",
    extension_point="fleet.power_cap",
    rule=rule,
    knobs=EveryoneKnobs,
    gains="More servers than the sum of their peaks allows.",
    costs="Work that must not be late is slowed down with the rest.",
    claims=("polca-2023",),
)
