"""Poisson: many independent users, each of whom asks seldom."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.serving.arrivals.clock import Floats, unit_arrivals


def rule(count: int, rate_per_s: float, stream: np.random.Generator, knobs: NoKnobs) -> Floats:
    """Independent exponential gaps of mean 1/rate."""
    return unit_arrivals(count, stream) / rate_per_s


TECHNIQUE = Technique(
    name="poisson",
    extension_point="serving.arrivals",
    rule=rule,
    gains="The law of independent users, and the one that queueing theory answers for.",
    costs="No bursts, no hours of the day: real services are rougher.",
    claims=("vllm", "wang-2023-burstgpt"),
)
