"""Constant: like clockwork."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.serving.arrivals.clock import Floats


def rule(count: int, rate_per_s: float, stream: np.random.Generator, knobs: NoKnobs) -> Floats:
    """The n-th request at n/rate."""
    return np.arange(1, count + 1) / rate_per_s


TECHNIQUE = Technique(
    name="constant",
    extension_point="serving.arrivals",
    rule=rule,
    gains="No chance in the arrivals: what is left is the server's own variation.",
    costs="The kindest traffic there is: waiting comes out too short.",
    claims=("vllm",),
)
