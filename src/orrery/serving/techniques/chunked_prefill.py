"""Chunked prefill with stall-free batches: decodes first, then pieces of prompts up to the token budget."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import IN_CLOSED_FORM, Batching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(Batching):
    """``chunk_tokens`` bounds the prompt tokens of a step; 0 = the token budget does."""

    chunk_tokens: int = 0
    mixes: bool = True


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """Remainder of the budget and of the chunk."""
    if knobs[0] > 0.0:
        budget = min(budget, int(knobs[0]) - taken)
    return min(left, budget)


TECHNIQUE = Technique(
    name="chunked-prefill",
    extension_point="serving.policy",
    rule=grant,
    knobs=Knobs,
    gains="A long prompt never stops the others' tokens: it is computed a piece a step beside them.",
    costs="A later first token for a long prompt; every piece reads its keys and values, and experts' weights, again.",
    claims=("sarathi-serve-2024", "vllm-v1-2025"),
    traits=frozenset({IN_CLOSED_FORM}),
)
