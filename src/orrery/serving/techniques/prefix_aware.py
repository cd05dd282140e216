"""Prefix-aware: the replica that holds most of the prompt, unless it is too far behind."""

from collections.abc import Sequence
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.serving.batching import READS_PREFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Balance: a replica more than ``most_behind_requests`` above the least loaded is passed over."""

    most_behind_requests: float = 8.0


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
    """The longest cached prefix among the replicas that are not overloaded; the shortest among equals."""
    least = requests[0]
    for k in range(1, len(requests)):
        least = min(least, requests[k])
    best = -1
    for k in range(len(requests)):
        if requests[k] > least + knobs[0]:
            continue
        is_shorter = best >= 0 and prefix_blocks[k] == prefix_blocks[best] and requests[k] < requests[best]
        if best < 0 or prefix_blocks[k] > prefix_blocks[best] or is_shorter:
            best = k
    return best


TECHNIQUE = Technique(
    name="prefix-aware",
    extension_point="serving.route",
    rule=route,
    knobs=Knobs,
    gains="Shared prompts are computed once in the fleet.",
    costs="The router must know what every replica holds.",
    claims=("zheng-2024-sglang", "srivatsa-2024-preble"),
    measure="how many leading tokens your prompts share",
    traits=frozenset({READS_PREFIXES}),
)
