"""Learning from traces against learning from a verifier, where right ways to answer differ in worth.

Answers come in styles; a step in a style earns a point with the style's own chance. A clone of demonstrations repeats
styles as often as it saw them. A learner with a verifier tries traces, has each scored, and keeps to the style whose
traces scored best. The distance to the best style grows with the answer's length for a clone, as it earns the mean of
the demonstrated styles, and stays small for the other, unless all styles are worth the same. [verifier-based-tts-2025]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Styles:
    """``num_styles`` whose chances of a point lie evenly around ``mean_frac``, ``spread_frac`` to either side."""

    num_styles: int = 8
    mean_frac: float = 0.5
    spread_frac: float = 0.3

    def chances(self) -> Floats:
        """Of a point in each style."""
        return self.mean_frac + self.spread_frac * np.linspace(-1.0, 1.0, self.num_styles)


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """Points that learners miss on one answer, against the best style."""

    cloned_points_ratio: float
    verified_points_ratio: float

    @property
    def gap_points_ratio(self) -> float:
        """How many more a clone misses."""
        return self.cloned_points_ratio - self.verified_points_ratio


def missed(styles: Styles, num_steps: int, num_traces: int, random: np.random.Generator, repeats: int = 200) -> Short:
    """What both learners miss on answers of ``num_steps`` steps, with ``num_traces`` traces each, on average.

    Demonstrations come from the better half of the styles, as experts' would.
    """
    chances = styles.chances()
    best, experts = float(chances.max()), np.argsort(chances)[styles.num_styles // 2 :]
    cloned = num_steps * (best - chances[random.choice(experts, (repeats, num_traces))].mean(axis=1))
    tried = random.integers(styles.num_styles, size=(repeats, num_traces))
    points = random.binomial(num_steps, chances[tried])
    found = [_best_style(t, p, styles.num_styles) for t, p in zip(tried, points, strict=True)]
    verified = num_steps * (best - chances[found])
    return Short(cloned_points_ratio=float(cloned.mean()), verified_points_ratio=float(verified.mean()))


def _best_style(tried: NDArray[np.int64], points: NDArray[np.int64], num_styles: int) -> int:
    """The tried style with the highest mean score."""
    counts = np.bincount(tried, minlength=num_styles)
    means = np.bincount(tried, weights=points, minlength=num_styles) / np.maximum(counts, 1)
    return int(np.argmax(np.where(counts > 0, means, -1.0)))
