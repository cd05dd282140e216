"""Request-level batching without padding: all prompts are packed into one row (redundancy elimination)."""

from collections.abc import Sequence

from orrery.base.technique import Technique
from orrery.serving.batching import StaticBatching


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """The whole prompt."""
    return left


TECHNIQUE = Technique(
    name="packed-batch",
    extension_point="serving.policy",
    rule=grant,
    knobs=StaticBatching,
    gains="No time goes into padding: linear layers see the tokens that there are.",
    costs="Attention needs to know where each sequence starts.",
    claims=("energonai-2022",),
)
