"""Prompt and response lengths of a batch of rollouts: a long tail, cut off at the longest response.

Responses are lognormal before they are cut off, with the mean after it that was asked for. Responses to one prompt are
alike: of the variance of log length, ``PROMPT_SHARE`` belongs to the prompt (hard problems take long) and the rest to
the draw.
"""

import math
from dataclasses import dataclass

import numpy as np

from orrery.engine.streams import stream
from orrery.serving.requests import Ints
from orrery.serving.synthesis.clipped import lognormal_centre
from orrery.serving.synthesis.lengths import NO_SPREAD, Length, draw, whole

PROMPT_SHARE = 0.5
"""Share of the variance of log length that the prompt decides. Assumed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lengths:
    """Prompts in order, ``group`` responses to each behind one another; tokens."""

    prompt: Ints
    response: Ints

    @property
    def total(self) -> Ints:
        """Tokens of each sequence as it is trained on."""
        return self.prompt + self.response


def lengths_of(prompt: Length, response: Length, num_prompts: int, group: int, seed: int, batch: int = 0) -> Lengths:
    """The lengths of one batch; ``batch`` numbers those of later steps, which differ."""
    prompts = draw(prompt, num_prompts, stream(seed, f"rl/prompt/{batch}"))
    drawn = stream(seed, f"rl/response/{batch}")
    if response.law != "lognormal" or response.std_tokens < NO_SPREAD * response.mean_tokens:
        responses = draw(response, num_prompts * group, drawn)
    else:
        shared = np.repeat(stream(seed, f"rl/difficulty/{batch}").standard_normal(num_prompts), group)
        own = drawn.standard_normal(num_prompts * group)
        z = math.sqrt(PROMPT_SHARE) * shared + math.sqrt(1.0 - PROMPT_SHARE) * own
        sigma = math.sqrt(math.log1p((response.std_tokens / response.mean_tokens) ** 2))
        mu = lognormal_centre(response.mean_tokens, sigma, response.most_tokens)
        responses = whole(np.exp(mu + sigma * z), response.most_tokens)
    return Lengths(prompt=np.repeat(prompts, group), response=responses)
