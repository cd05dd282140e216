"""Session affinity: a conversation stays on its replica; a new one goes to the least loaded."""

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
    """Home, or the shortest."""
    if home >= 0:
        return home
    best = 0
    for k in range(1, len(requests)):
        if requests[k] < requests[best]:
            best = k
    return best


TECHNIQUE = Technique(
    name="session-affinity",
    extension_point="serving.route",
    rule=route,
    gains="The next turn finds the cache of the last one.",
    costs="Long conversations pile up where they began.",
    claims=("srivatsa-2024-preble",),
)
