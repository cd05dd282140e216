"""Intervals of fitted constants: the quantiles that they hold, and how far they widen where nobody measured."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

QUANTILES = {"low_80": 0.1, "high_80": 0.9, "low_95": 0.025, "high_95": 0.975}

LONE_WIDENING = 2.0
"""How much wider (log) an interval of a product is on an unmeasured sibling of a single measured device: what leaving a
device out costs in the generations that have two. Attention finds its own, ``sibling_factor``."""

FACTORS = np.arange(1.0, 4.0, 0.01)
HELD = 0.8
"""Share of a device's measurements that the interval of its sibling's constants should hold."""


def spread_of(values: Floats) -> dict[str, float]:
    """Quantiles of measured / predicted."""
    return {name: round(float(np.quantile(values, q)), 4) for name, q in QUANTILES.items()}


def widened(spread: Mapping[str, float], factor: float) -> dict[str, float]:
    """Every half-width ``factor`` times as wide, in log space."""
    return {name: round(value**factor, 4) for name, value in spread.items()}


def sibling_factor(pairs: Sequence[tuple[Floats, Floats]]) -> float:
    """How much wider (log) an interval is on a device that was not measured than on its measured sibling.

    ``pairs``: measured / predicted of each device by its own constants, and by its siblings'. The least factor at which
    intervals of the first hold ``HELD`` of the second, so that what siblings differ by in level counts as well as how
    far rows scatter; every pair weighs the same.
    """
    if not pairs:
        return 1.5
    ends = [np.quantile(own, (0.1, 0.9)) for own, _ in pairs]
    for factor in FACTORS:
        inside = zip(ends, pairs, strict=True)
        held = [float(np.mean((v >= low**factor) & (v <= high**factor))) for (low, high), (_, v) in inside]
        if np.mean(held) >= HELD:
            return float(factor)
    return float(FACTORS[-1])
