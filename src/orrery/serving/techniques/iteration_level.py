"""Iteration-level scheduling: requests join and leave between steps, whole prompts run beside decodes (Orca)."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import Batching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(Batching):
    """Whole prompts, without a token budget."""

    mixes: bool = True
    reserves_output: bool = True


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """The whole prompt."""
    return left


TECHNIQUE = Technique(
    name="iteration-level",
    extension_point="serving.policy",
    rule=grant,
    knobs=Knobs,
    gains="No request waits for the longest output of a batch, and seats are filled at once.",
    costs="A step with a long prompt is as slow as the prompt, and the cache of every answer is reserved in full.",
    claims=("orca-2022",),
)
