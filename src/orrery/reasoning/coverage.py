"""Probability that some of n tries is right, and the point at which further tries stop paying.

Tries side by side: 1 - (1 - p)^n. Rounds that each mend a wrong answer with probability p, and never spoil a right
one, are a chain with an absorbing state, and reach it with the same probability. [ttspm-2025]
"""

from dataclasses import dataclass
from math import ceil, isinf, log

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]


def coverage(success_frac: float | Floats, num_tries: float | Floats) -> Floats:
    """The chance that at least one of ``num_tries`` independent tries is right."""
    return 1.0 - (1.0 - np.asarray(success_frac, dtype=np.float64)) ** num_tries


def gain_frac(success_frac: float, num_tries: int, ceiling_frac: float = 1.0) -> float:
    """Gain of the next try after ``num_tries``: ceiling x p (1 - p)^n."""
    return ceiling_frac * success_frac * (1.0 - success_frac) ** num_tries


def saturation_tries(success_frac: float, least_gain_frac: float, ceiling_frac: float = 1.0) -> int:
    """The fewest tries after which a further one adds less than ``least_gain_frac``.

    n = ceil(log(least / (ceiling p)) / log(1 - p)); 0 where even the first adds less.
    """
    for name, value in (("success_frac", success_frac), ("least_gain_frac", least_gain_frac)):
        if not 0.0 < value <= 1.0:
            raise ScenarioError(f"{name} = {value:g}; write more than 0 and at most 1.")
    if ceiling_frac * success_frac <= least_gain_frac:
        return 0
    if success_frac == 1.0:
        return 1
    return max(0, ceil(log(least_gain_frac / (ceiling_frac * success_frac)) / log(1.0 - success_frac) - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difficulty:
    """Questions whose chance of a right answer follows a beta distribution.

    ``mean_frac`` is the accuracy of one try. ``evenness_ratio`` = a + b: near 0 a question is always or never solved,
    large values make all questions alike, infinite ones exactly so.
    """

    mean_frac: float
    evenness_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.mean_frac <= 1.0 or self.evenness_ratio <= 0.0:
            raise ScenarioError(
                f"mean_frac = {self.mean_frac:g}, evenness_ratio = {self.evenness_ratio:g}; "
                "write a mean above 0 and at most 1, and an evenness above 0."
            )

    @property
    def is_one(self) -> bool:
        """Whether every question is solved with the same chance."""
        return isinf(self.evenness_ratio) or self.mean_frac == 1.0

    def coverage(self, num_tries: int) -> float:
        """1 - E[(1 - p)^n], the product of (b + i) / (a + b + i)."""
        missed = 1.0 - self.mean_frac
        if self.is_one:
            return float(coverage(self.mean_frac, num_tries))
        i = np.arange(num_tries)
        return 1.0 - float(np.prod((missed * self.evenness_ratio + i) / (self.evenness_ratio + i)))

    def bins(self, count: int, num_points: int = 100_000) -> Floats:
        """Mean chance in each of ``count`` equally full bins, hardest first; a single one where all are alike.

        Integrated over p ** a below one half and (1 - p) ** b above it, in which the poles at the ends are flat.
        """
        if self.is_one:
            return np.full(1, self.mean_frac)
        a, b = self.mean_frac * self.evenness_ratio, (1.0 - self.mean_frac) * self.evenness_ratio
        middles = (np.arange(num_points) + 0.5) / num_points
        low, high = 0.5 * middles ** (1.0 / a), 0.5 * middles[::-1] ** (1.0 / b)
        p = np.concatenate([low, 1.0 - high])
        weights = np.concatenate([0.5**a / a * (1.0 - low) ** (b - 1.0), 0.5**b / b * (1.0 - high) ** (a - 1.0)])
        whole = np.cumsum(weights) / weights.sum()
        bin_of = np.minimum((whole * count).astype(np.int64), count - 1)
        sums = np.bincount(bin_of, weights=weights * p, minlength=count)
        return sums / np.maximum(np.bincount(bin_of, weights=weights, minlength=count), 1e-300)
