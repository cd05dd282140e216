"""First come, first served."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Empty set of knobs: the technique has none."""


def order(
    entered_s: float,
    priority: float,
    input_tokens: float,
    output_tokens: float,
    client_tag: float,
    knobs: Sequence[float],
) -> float:
    """The moment of entry."""
    return entered_s


TECHNIQUE = Technique(
    name="fcfs",
    extension_point="serving.queue",
    rule=order,
    knobs=Knobs,
    gains="No request is overtaken.",
    costs="A short request waits behind every long one.",
    claims=("kwon-2023",),
)
