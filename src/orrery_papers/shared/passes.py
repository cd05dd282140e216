"""Batches of one step for reproductions: whole prompts, and answers; what overlaps make of them is the engine's own."""

from dataclasses import replace

import numpy as np

from orrery.execution import overlapped
from orrery.execution.batch import Batch, Floats, Ints
from orrery.execution.layout import Deployment
from orrery.execution.overlapped import Pass, halved, overlapped_s
from orrery.execution.step import step

__all__ = ["Pass", "decodes", "halved", "overlapped_s", "pass_of", "prompts", "with_network"]


def pass_of(deployment: Deployment, batch: Batch) -> Pass:
    """The passes that ``batch`` asks for."""
    whole, half = (step(deployment, x).parts for x in (batch, halved(batch)))
    return overlapped.pass_of(deployment, whole, half, batch.num_tokens.size)


def with_network(done: Pass, network_s: Floats) -> Pass:
    """The same kernels over another link, whose collectives take ``network_s``."""
    return replace(done, total_s=done.kernels_s + network_s, network_s=network_s)


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
