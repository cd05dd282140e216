"""Chunks of prompts and decodes in turn: prompts in pieces, and no step that holds both."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import Batching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(Batching):
    """``chunk_tokens`` bounds the prompt tokens of a step; 0 = the token budget does."""

    chunk_tokens: int = 0
    mixes: bool = False
    alternates: bool = True


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """Remainder of the budget and of the chunk."""
    if knobs[0] > 0.0:
        budget = min(budget, int(knobs[0]) - taken)
    return min(left, budget)


TECHNIQUE = Technique(
    name="alternating",
    extension_point="serving.policy",
    rule=grant,
    knobs=Knobs,
    gains="A long prompt stops the others' tokens for one piece at a time, by kernels that never see both in a step.",
    costs="Weights are read for pieces and again for decodes between them, so prompts and answers both take longer.",
    claims=("sarathi-serve-2024",),
)
