"""Decode speed of a deployment by concurrency, and its speed of scoring."""

import numpy as np

from orrery.execution.layout import Deployment
from orrery.reasoning.chains import Models, Pace
from orrery.serving.clock import steps_of, tick


def pace_of(deployment: Deployment, context_tokens: float, most_sequences: int) -> Pace:
    """Seconds of one token of each of 1 to ``most_sequences`` sequences with that context."""
    sizes, zero = np.arange(1.0, most_sequences + 1), np.zeros(most_sequences)
    times = tick(deployment, steps_of(zero, zero, zero, sizes, zero + context_tokens)).time_s
    return lambda count: float(times[min(count, most_sequences) - 1])


def models_of(
    draft: Deployment, target: Deployment, *, context_tokens: float, block_tokens: float, most_sequences: int
) -> Models:
    """The paces of a small and a large model; scores are prompts of one block, alone and ``most_sequences`` of them."""
    counts, zero = np.array([1.0, float(most_sequences)]), np.zeros(2)
    prompts = steps_of(counts, zero + block_tokens, zero + context_tokens, zero, zero)
    one_s, many_s = (float(t) for t in tick(target, prompts).time_s)
    per_token_s = max(0.0, (many_s - one_s) / (max(most_sequences - 1, 1) * block_tokens))
    return Models(
        draft=pace_of(draft, context_tokens, most_sequences),
        target=pace_of(target, context_tokens, most_sequences),
        score_s_per_token=per_token_s,
        score_base_s=one_s - per_token_s * block_tokens,
    )
