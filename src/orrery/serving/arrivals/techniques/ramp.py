"""Ramp: the rate rises or falls in a straight line over the run."""

from dataclasses import dataclass

import numpy as np

from orrery.base.technique import Technique
from orrery.serving.arrivals.clock import Floats, unit_arrivals
from orrery.serving.arrivals.limits import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Ramp:
    """The last rate over the first: 4 = the run ends four times as busy as it starts."""

    end_to_start_ratio: float = 4.0

    def __post_init__(self) -> None:
        check("end_to_start_ratio", self.end_to_start_ratio, least=1e-3, most=1e6, write="a number from 0.001")


def rule(count: int, rate_per_s: float, stream: np.random.Generator, knobs: Ramp) -> Floats:
    """Rate(t) = r0 + (r1 - r0) t/D over D = count/rate, r1 = k r0, (r0 + r1)/2 = rate; r1 ever after.

    The n-th unit arrival u solves r0 t + (r1 - r0) t²/(2 D) = u, in the form of the root that never cancels.
    """
    first = 2.0 * rate_per_s / (1.0 + knobs.end_to_start_ratio)
    last = knobs.end_to_start_ratio * first
    lasts_s = count / rate_per_s
    units = unit_arrivals(count, stream)
    on_ramp = np.minimum(units, count)
    at = 2.0 * on_ramp / (first + np.sqrt(np.maximum(first**2 + 2.0 * (last - first) / lasts_s * on_ramp, 0.0)))
    return at + (units - on_ramp) / last


TECHNIQUE = Technique(
    name="ramp",
    extension_point="serving.arrivals",
    rule=rule,
    knobs=Ramp,
    gains="One run shows at which rate a server falls behind.",
    costs="Never steady: its percentiles belong to no single rate.",
    claims=("vllm", "cinlar-1975"),
)
