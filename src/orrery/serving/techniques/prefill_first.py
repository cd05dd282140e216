"""Prompts first, in steps of their own: vLLM before V1, and SGLang unless told otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import IN_CLOSED_FORM, Batching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(Batching):
    """Prompts and decodes never share a step."""

    mixes: bool = False


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """Whole prompts while they fit into the budget; one that never fits goes in pieces."""
    return min(left, step_tokens) if taken == 0 else (left if left <= budget else 0)


TECHNIQUE = Technique(
    name="prefill-first",
    extension_point="serving.policy",
    rule=grant,
    knobs=Knobs,
    gains="The earliest first token, and large prompt batches.",
    costs="Every running answer stands still while prompts are computed.",
    claims=("kwon-2023",),
    traits=frozenset({IN_CLOSED_FORM}),
)
