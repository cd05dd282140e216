"""Load times of one service as they spread: some find their files near, the others fetch them from afar.

The logarithm of a load time is normal around the median of its path; a share of the loads takes the near one. The
three are found from measured times by expectation and maximisation (Dempster, Laird and Rubin 1977).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ROUNDS = 200
"""Rounds of the search; times of two well-parted paths settle within some 30."""

NARROWEST = 0.02
"""Least spread of a path's logarithm, so that one repeated value does not swallow the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoPaths:
    """A share of loads by the near path, and the median and spread of both."""

    near_frac: float
    near_median_s: float
    far_median_s: float
    near_spread_ratio: float  # standard deviation of the logarithm
    far_spread_ratio: float

    def below_frac(self, seconds_s: float) -> float:
        """Return the share of loads that take at most so long."""
        near, far = self._laws()
        at = float(np.log(seconds_s))
        return self.near_frac * near.cdf(at) + (1.0 - self.near_frac) * far.cdf(at)

    def quantile_s(self, share_frac: float) -> float:
        """Return the time that a share of the loads stays below, by bisection."""
        near, far = self._laws()
        low = min(near.mean - 8 * near.stdev, far.mean - 8 * far.stdev)
        high = max(near.mean + 8 * near.stdev, far.mean + 8 * far.stdev)
        for _ in range(100):
            middle = (low + high) / 2.0
            below = self.below_frac(float(np.exp(middle))) < share_frac
            low, high = (middle, high) if below else (low, middle)
        return float(np.exp((low + high) / 2.0))

    def _laws(self) -> tuple[NormalDist, NormalDist]:
        near = NormalDist(float(np.log(self.near_median_s)), self.near_spread_ratio)
        return near, NormalDist(float(np.log(self.far_median_s)), self.far_spread_ratio)


def two_paths(seconds_s: Sequence[float]) -> TwoPaths:
    """Return the two paths behind measured load times, which must be positive."""
    logs: Floats = np.log(np.asarray(seconds_s, dtype=np.float64))
    means = np.quantile(logs, (0.1, 0.9))
    spreads = np.full(2, max(float(logs.std()) / 2.0, NARROWEST))
    shares = np.array((0.5, 0.5))
    for _ in range(ROUNDS):
        z = (logs[:, None] - means) / spreads
        heights = shares / spreads * np.exp(-0.5 * z * z) + 1e-300
        parts = heights / heights.sum(axis=1, keepdims=True)
        weight = parts.sum(axis=0)
        shares = weight / len(logs)
        means = (parts * logs[:, None]).sum(axis=0) / weight
        spreads = np.sqrt((parts * (logs[:, None] - means) ** 2).sum(axis=0) / weight).clip(NARROWEST)
    near, far = (0, 1) if means[0] <= means[1] else (1, 0)
    return TwoPaths(
        near_frac=float(shares[near]),
        near_median_s=float(np.exp(means[near])),
        far_median_s=float(np.exp(means[far])),
        near_spread_ratio=float(spreads[near]),
        far_spread_ratio=float(spreads[far]),
    )
