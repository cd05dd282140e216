"""Lower priority numbers first; equal ones in order of arrival."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import EVICTS_BY_KEY


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """``level_s`` of waiting outweigh one level of priority; the default never lets anybody age."""

    level_s: float = 1e9


def order(
    entered_s: float,
    priority: float,
    input_tokens: float,
    output_tokens: float,
    client_tag: float,
    knobs: Sequence[float],
) -> float:
    """Levels in seconds, then the moment of entry."""
    return priority * knobs[0] + entered_s


TECHNIQUE = Technique(
    name="priority",
    extension_point="serving.queue",
    rule=order,
    knobs=Knobs,
    gains="What matters most is served first, and preempted last.",
    costs="The rest waits, without end under overload.",
    claims=("vllm-v1-2025",),
    traits=frozenset({EVICTS_BY_KEY}),
)
