"""A threshold on scores that rejects a known share: set on one half of some scores, checked on the other.

Of n exchangeable scores the k-th smallest, k = floor(level x (n + 1)), is a threshold below which a new one falls with
a chance of at most ``level`` and at least level - 1 / (n + 1), whatever their law [vovk-2005-conformal].
"""

from dataclasses import dataclass
from math import floor

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """A threshold, the share of held-out scores that it rejects, and how many there were."""

    threshold_frac: float
    level_frac: float
    rejected_frac: float  # of the scores that had no part in it
    num_calibrated: int
    num_checked: int

    @property
    def spread_frac(self) -> float:
        """Standard deviation of the checked share: of the threshold's own draw, and of the check."""
        noise = self.level_frac * (1.0 - self.level_frac)
        return float(np.sqrt(noise / (self.num_calibrated + 2) + noise / self.num_checked))


def calibrated(scores: Floats, level_frac: float, seed: int = 0) -> Calibrated:
    """The threshold from a random half of the scores, and what it rejects of the other."""
    if not 0.0 <= level_frac < 1.0:
        raise ScenarioError(f"rejection_level: got {level_frac:g}; write 0 up to, but not, 1.")
    if scores.size < 4 or not np.isfinite(scores).all():
        raise ScenarioError(
            f"scores: got {scores.size}; write 4 finite numbers or more, so that halves can be checked."
        )
    order = np.random.default_rng(seed).permutation(scores.size)
    half = scores.size // 2
    first, second = np.sort(scores[order[:half]]), scores[order[half:]]
    rank = floor(level_frac * (half + 1))
    threshold = float(first[rank - 1]) if rank else -np.inf
    return Calibrated(
        threshold_frac=threshold,
        level_frac=level_frac,
        rejected_frac=float((second <= threshold).mean()),
        num_calibrated=half,
        num_checked=int(second.size),
    )
