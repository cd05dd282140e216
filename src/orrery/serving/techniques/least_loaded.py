"""Least loaded: the replica with the fewest unfinished requests."""

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
    """The shortest; the first among equals."""
    best = 0
    for k in range(1, len(requests)):
        if requests[k] < requests[best]:
            best = k
    return best


TECHNIQUE = Technique(
    name="least-loaded",
    extension_point="serving.route",
    rule=route,
    knobs=Knobs,
    gains="Evens out bursts and long answers.",
    costs="Every replica is asked for every request.",
    claims=("mitzenmacher-2001",),
)
