"""Least loaded: the replica with the fewest unfinished requests."""

from collections.abc import Sequence

from orrery.base.technique import Technique
from orrery.serving.batching import BALANCES


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
    gains="Evens out bursts and long answers.",
    costs="Every replica is asked for every request.",
    claims=("mitzenmacher-2001",),
    traits=frozenset({BALANCES}),
)
