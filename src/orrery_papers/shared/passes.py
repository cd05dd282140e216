"""Batches of one step for reproductions: whole prompts, and answers; what overlaps make of them is the engine's own."""

import numpy as np

from orrery.execution.batch import Batch, Ints
from orrery.execution.overlapped import Pass, halved, overlapped_s, pass_of, with_network

__all__ = ["Pass", "decodes", "halved", "overlapped_s", "pass_of", "prompts", "with_network"]


def prompts(tokens: Ints, sequences: int = 1) -> Batch:
    """``sequences`` whole prompts of equal length in a step, one entry for each length."""
    none = np.zeros_like(tokens)
    return Batch(
        prompt_sequences=none + sequences,
        prompt_tokens=tokens,
        prompt_context_tokens=tokens,
        decode_sequences=none,
        decode_context_tokens=none,
    )


def decodes(sequences: Ints, context_tokens: Ints) -> Batch:
    """Steps of answers only."""
    none = np.zeros_like(sequences)
    return Batch(
        prompt_sequences=none,
        prompt_tokens=none,
        prompt_context_tokens=none,
        decode_sequences=sequences,
        decode_context_tokens=context_tokens,
    )
