"""Request-level batching without padding: all prompts are packed into one row (redundancy elimination)."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import Batching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(Batching):
    """As request-level batching, but only real tokens are computed."""

    mixes: bool = False
    waits_for_empty: bool = True
    holds_batch: bool = True
    returns_together: bool = True
    reserves_output: bool = True


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """The whole prompt."""
    return left


TECHNIQUE = Technique(
    name="packed-batch",
    extension_point="serving.policy",
    rule=grant,
    knobs=Knobs,
    gains="No time goes into padding: linear layers see the tokens that there are.",
    costs="Attention needs to know where each sequence starts.",
    claims=("energonai-2022",),
)
