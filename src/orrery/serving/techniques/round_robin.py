"""Round robin: replicas take turns."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Empty set of knobs: the technique has none."""


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
    knobs=Knobs,
    gains="Needs to know nothing.",
    costs="Unequal requests load replicas unequally.",
    claims=("mitzenmacher-2001",),
)
