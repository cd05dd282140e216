"""Request-level batching: a batch starts together, padded to its longest prompt, and ends with its last answer."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import Batching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(Batching):
    """FasterTransformer behind a server: static batches."""

    mixes: bool = False
    waits_for_empty: bool = True
    holds_batch: bool = True
    returns_together: bool = True
    pads_prompts: bool = True
    reserves_output: bool = True


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
