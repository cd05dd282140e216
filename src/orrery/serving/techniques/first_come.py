"""First come, first served."""

from collections.abc import Sequence

from orrery.base.technique import Technique


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
    gains="No request is overtaken.",
    costs="A short request waits behind every long one.",
    claims=("kwon-2023",),
)
