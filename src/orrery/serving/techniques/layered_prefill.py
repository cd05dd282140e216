"""Layered prefill: a whole prompt advances a group of layers a step, beside the decodes of all layers."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import Batching


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(Batching):
    """``layer_group_tokens`` tokens in all layers take as long as a group of layers of the whole prompt should."""

    layer_group_tokens: int = 512
    mixes: bool = True


def grant(left: int, budget: int, taken: int, step_tokens: int, knobs: Sequence[float]) -> int:
    """The whole prompt, or nothing while another one is under way."""
    return left if taken == 0 or taken + left <= step_tokens else 0


TECHNIQUE = Technique(
    name="layered-prefill",
    extension_point="serving.policy",
    rule=grant,
    knobs=Knobs,
    gains="Decodes never stall, and weights of experts are read once a prompt instead of once a chunk.",
    costs="A prompt holds its activations over several steps, and the next one waits until it is through all layers.",
    claims=("layered-prefill-2025",),
)
