"""Batches of decodes alone, which tests of steps share."""

import numpy as np

from orrery.execution.batch import Batch


def decodes(*tokens):
    """A step for each number of tokens, every sequence after 1,000 others."""
    n = np.array(tokens, dtype=np.int64)
    zero = np.zeros_like(n)
    return Batch(
        prompt_sequences=zero,
        prompt_tokens=zero,
        prompt_context_tokens=zero,
        decode_sequences=n,
        decode_context_tokens=zero + 1000,
    )
