"""Requests that have nothing to do with each other: an arrival law, and lengths drawn or taken from a trace."""

from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import Requests
from orrery.serving.synthesis.lengths import Ints, Length, draw


def independent(
    count: int, rate_per_s: float, seed: int, *, input: Length, output: Length, law: str = "poisson", **knobs: Any
) -> Requests:
    """``count`` requests at that mean rate, prompts and answers drawn apart; the knobs are those of the law.

    The streams are "arrivals", "lengths/input" and "lengths/output": another rate or law leaves the lengths alone.
    """
    return Requests(
        arrive_s=arrivals(law, count, rate_per_s, seed, **knobs),
        input_tokens=draw(input, count, stream(seed, "lengths/input")),
        output_tokens=draw(output, count, stream(seed, "lengths/output")),
    )


def resampled(
    count: int,
    rate_per_s: float,
    seed: int,
    *,
    input_tokens: Ints,
    output_tokens: Ints,
    law: str = "poisson",
    **knobs: Any,
) -> Requests:
    """Lengths drawn with replacement from those of a trace, prompt and answer together: what goes with what is kept."""
    if input_tokens.size == 0 or input_tokens.size != output_tokens.size:
        raise ScenarioError(
            f"lengths: got {input_tokens.size} prompts and {output_tokens.size} answers; write one answer a prompt."
        )
    drawn = np.floor(stream(seed, "lengths").random(count) * input_tokens.size).astype(np.int64)
    return Requests(
        arrive_s=arrivals(law, count, rate_per_s, seed, **knobs),
        input_tokens=input_tokens[drawn],
        output_tokens=output_tokens[drawn],
    )
