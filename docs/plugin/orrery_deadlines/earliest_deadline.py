"""Earliest deadline first: a request is due after a fixed time and a time per prompt token."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """``base_s`` (seconds) and ``per_token_s`` (seconds per prompt token) until a first token is due."""

    base_s: float = 0.5
    per_token_s: float = 0.0002


def order(
    entered_s: float,
    priority: float,
    input_tokens: float,
    output_tokens: float,
    client_tag: float,
    knobs: Sequence[float],
) -> float:
    """Return when the first token is due (seconds): the lowest goes first."""
    return entered_s + knobs[0] + knobs[1] * input_tokens


TECHNIQUE = Technique(
    name="earliest-deadline",
    extension_point="serving.queue",
    rule=order,
    knobs=Knobs,
    gains="Short prompts meet a TTFT that long ones do not need.",
    costs="Long prompts wait while short ones keep coming.",
    claims=("liu-layland-1973",),
)
