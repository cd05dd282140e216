"""Round robin: replicas take turns."""

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
    """The next in turn."""
    return turn % len(requests)


TECHNIQUE = Technique(
    name="round-robin",
    extension_point="serving.route",
    rule=route,
    gains="Needs to know nothing.",
    costs="Unequal requests load replicas unequally.",
    claims=("mitzenmacher-2001",),
)
