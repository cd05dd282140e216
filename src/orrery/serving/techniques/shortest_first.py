"""Shortest job first, by the tokens of the request."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """``prompt_ratio``: how much a prompt token counts against an answer token."""

    prompt_ratio: float = 0.1


def order(
    entered_s: float,
    priority: float,
    input_tokens: float,
    output_tokens: float,
    client_tag: float,
    knobs: Sequence[float],
) -> float:
    """Weighted tokens."""
    return input_tokens * knobs[0] + output_tokens


TECHNIQUE = Technique(
    name="shortest-first",
    extension_point="serving.queue",
    rule=order,
    knobs=Knobs,
    gains="The lowest mean waiting time where lengths are known.",
    costs="Long requests starve under load, and the length of an answer must be predicted.",
    claims=("fu-2024-learning-to-rank",),
    measure="how well output lengths are known before a request is served",
)
