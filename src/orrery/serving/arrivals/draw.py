"""Arrival times by the name of their law."""

import math
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.extension_points import ExtensionPoint, knobs_with
from orrery.engine.streams import stream
from orrery.serving.arrivals import techniques
from orrery.serving.arrivals.clock import Floats

MOST = 100_000_000
"""More requests than a run could ever hold; such a count is a slip."""


ARRIVALS = ExtensionPoint(name="serving.arrivals", folder=techniques, noun="law of arrivals")


def arrivals(law: str, count: int, rate_per_s: float, seed: int = 0, **knobs: Any) -> Floats:
    """``count`` arrival times in seconds by that law at that mean rate, the first after the first gap.

    The same seed at another rate gives the same gaps, scaled. An infinite rate puts every arrival at 0.

    >>> arrivals("constant", 3, 2.0).tolist()
    [0.5, 1.0, 1.5]
    """
    technique = ARRIVALS.get(law)
    settings = knobs_with(technique, knobs)
    if not 0 <= count <= MOST:
        raise ScenarioError(f"arrivals: count: got {count}; write a whole number up to {MOST:,}.")
    if not rate_per_s > 0:
        raise ScenarioError(f"arrivals: rate: got {rate_per_s:g} requests/s; write a number above 0.")
    if count == 0 or math.isinf(rate_per_s):
        return np.zeros(count)
    return technique.rule(count, rate_per_s, stream(seed, "arrivals"), settings)
