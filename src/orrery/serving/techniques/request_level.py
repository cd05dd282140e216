"""Request-level batching: a batch starts together, padded to its longest prompt, and ends with its last answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import StaticBatching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(StaticBatching):
    """FasterTransformer behind a server: static batches."""

    pads_prompts: bool = True


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """The whole prompt."""
    return left


TECHNIQUE = Technique(
    name="request-level",
    extension_point="serving.policy",
    rule=grant,
    knobs=Knobs,
    gains="The simplest server: one shape from start to end.",
    costs="Short answers wait for the longest one, and padding is computed like tokens.",
    claims=("orca-2022", "fastertransformer"),
)
