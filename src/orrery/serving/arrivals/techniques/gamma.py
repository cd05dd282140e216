"""Gamma gaps: burstier or smoother than Poisson by one number, as load generators do."""

import math
from dataclasses import dataclass

import numpy as np

from orrery.base.technique import Technique
from orrery.serving.arrivals.clock import Floats
from orrery.serving.arrivals.limits import TINY, check


@dataclass(frozen=True, slots=True, kw_only=True)
class Gamma:
    """``burstiness`` is the shape of the gaps: 1 = Poisson, smaller = bursts, infinite = clockwork.

    The gaps' coefficient of variation is 1/sqrt(burstiness).
    """

    burstiness: float = 1.0  # a ratio: 1/cv²

    def __post_init__(self) -> None:
        check("burstiness", self.burstiness, least=TINY, write="a number above 0: 1 = Poisson, smaller = bursts")


def rule(count: int, rate_per_s: float, stream: np.random.Generator, knobs: Gamma) -> Floats:
    """Gaps gamma(shape = b, scale = 1/(rate b)), summed, and scaled so that the last arrival is at count/rate.

    The scaling makes the rate asked for the rate got, as ``vllm bench serve --burstiness`` does [vllm].
    """
    shape = knobs.burstiness
    gaps = stream.standard_gamma(shape, count) if math.isfinite(shape) else np.ones(count)
    if not gaps.sum() > 0:
        gaps[-1] = 1.0  # so bursty that every gap rounds to nothing: one silence, then all at once
    return np.cumsum(gaps * (count / rate_per_s / gaps.sum()))


TECHNIQUE = Technique(
    name="gamma",
    extension_point="serving.arrivals",
    rule=rule,
    knobs=Gamma,
    gains="Bursts by one number that can be read off any trace: the spread of its gaps.",
    costs="Gaps are independent: no busy quarter of an hour follows another.",
    claims=("vllm", "wang-2023-burstgpt"),
)
