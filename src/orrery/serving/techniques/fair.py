"""Fair sharing among clients: start-time fair queueing over tokens, as the virtual token counter does."""

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
    """The client's virtual start time: tokens that it was served so far, or now if it was idle."""
    return client_tag


TECHNIQUE = Technique(
    name="fair",
    extension_point="serving.queue",
    rule=order,
    gains="A client that floods the queue only delays itself.",
    costs="Bursts of one client wait although seats were free for others later.",
    claims=("sheng-2024-vtc", "goyal-1996-sfq"),
)
