"""Fewest tokens: the replica with the least work left, in tokens."""

from collections.abc import Sequence

from orrery.base.technique import Technique


def route(
    requests: Sequence[float],
    tokens: Sequence[float],
    prefix_blocks: Sequence[float],
    home: int,
    turn: int,
    first_draw: float,
    second_draw: float,
    knobs: Sequence[float],
) -> int:
    """Return the index of the replica; the first among equals."""
    best = 0
    for k in range(1, len(tokens)):
        if tokens[k] < tokens[best]:
            best = k
    return best


TECHNIQUE = Technique(
    name="fewest-tokens",
    extension_point="serving.route",
    rule=route,
    gains="A replica that got a long prompt is left alone until it has read it.",
    costs="Replicas must report the tokens that they hold.",
    claims=("mitzenmacher-2001",),
)
