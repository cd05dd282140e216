"""A threshold that rejects a chosen share of what is to come, whatever the distribution of scores.

Of n calibration scores, taken in order, the threshold is the floor(alpha (n + 1))-th smallest; a new exchangeable score
lies below it with probability at most alpha, and more than alpha - 1 / (n + 1). [vovk-2005, atts-2025]
"""

from math import floor, inf

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]


def threshold(calibration: Floats, rejected_frac: float) -> float:
    """Scores below it are rejected; minus infinity where there are too few to say."""
    if not 0.0 <= rejected_frac < 1.0:
        raise ScenarioError(f"rejected_frac = {rejected_frac:g}; write at least 0 and less than 1.")
    rank = floor(rejected_frac * (calibration.size + 1))
    return float(np.sort(calibration)[rank - 1]) if rank else -inf


def measured_frac(calibration: Floats, fresh: Floats, rejected_frac: float) -> float:
    """The share of ``fresh`` scores that the threshold rejects."""
    return float((fresh < threshold(calibration, rejected_frac)).mean())
