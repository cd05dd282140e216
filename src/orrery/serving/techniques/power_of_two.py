"""Power of two choices: the less loaded of two random replicas."""

from collections.abc import Sequence

from orrery.base.technique import Technique
from orrery.serving.batching import DRAWS


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
    gains="Nearly as even as asking everybody, for two questions.",
    costs="A little longer queues than the least loaded.",
    claims=("mitzenmacher-2001",),
    traits=frozenset({DRAWS}),
)
