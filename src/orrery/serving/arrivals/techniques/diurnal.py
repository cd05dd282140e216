"""Diurnal: a sinusoid over the day, from the quiet hour to the busy one and back."""

import math
from dataclasses import dataclass

import numpy as np

from orrery.base.technique import Technique
from orrery.serving.arrivals.clock import Floats, unit_arrivals
from orrery.serving.arrivals.limits import TINY, check

POINTS = 1 << 16
"""Points of the day between which the inverse of the cumulative rate is a straight line: every 1.3 s of 24 h."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """How much busier the busiest moment is than the quietest, how long a day is, and when in it the run starts."""

    peak_to_trough_ratio: float = 3.0
    day_s: float = 86400.0
    start_frac: float = 0.0  # of a day; 0 = at the quietest moment, 0.5 = at the busiest

    def __post_init__(self) -> None:
        check("peak_to_trough_ratio", self.peak_to_trough_ratio, least=1.0, most=1e6, write="a number from 1")
        check("day_s", self.day_s, least=TINY, most=1e12, write="seconds above 0, such as 86400")
        check("start_frac", self.start_frac, least=0.0, most=1.0, write="a part of the day, 0 to 1")


def rule(count: int, rate_per_s: float, stream: np.random.Generator, knobs: Day) -> Floats:
    """Rate(t) = rate (1 - a cos(2 pi t/T)) with a = (p - 1)/(p + 1); over whole days its mean is ``rate``.

    Its integral, rate (t - a T/(2 pi) sin(2 pi t/T)), is inverted from a table of one day.
    """
    depth = (knobs.peak_to_trough_ratio - 1.0) / (knobs.peak_to_trough_ratio + 1.0)
    part = np.linspace(0.0, 1.0, POINTS + 1)
    passed = part - depth * np.sin(2.0 * math.pi * part) / (2.0 * math.pi)
    skipped = float(np.interp(knobs.start_frac, part, passed))
    days = unit_arrivals(count, stream) / (rate_per_s * knobs.day_s) + skipped
    whole = np.floor(days)
    return (whole + np.interp(days - whole, passed, part) - knobs.start_frac) * knobs.day_s


TECHNIQUE = Technique(
    name="diurnal",
    extension_point="serving.arrivals",
    rule=rule,
    knobs=Day,
    gains="The hours of the day: what a fleet must be sized for, and when it idles.",
    costs="A run must last a day before its mean rate is the one asked for.",
    claims=("wang-2023-burstgpt", "cinlar-1975"),
)
