"""Power of two choices: the less loaded of two random replicas."""

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
    """The shorter of two draws."""
    a = min(int(first_draw * len(requests)), len(requests) - 1)
    b = min(int(second_draw * len(requests)), len(requests) - 1)
    return a if requests[a] <= requests[b] else b


TECHNIQUE = Technique(
    name="power-of-two",
    extension_point="serving.route",
    rule=route,
    knobs=Knobs,
    gains="Nearly as even as asking everybody, for two questions.",
    costs="A little longer queues than the least loaded.",
    claims=("mitzenmacher-2001",),
)
