"""KV cost: the replica with the least work ahead, prompt tokens that it holds already counted off.

cost = tokens to come at the replica - weight x cached prompt tokens. Up to a constant that all replicas share, this is
the prompt tokens still to compute plus those under way. A temperature above 0 draws a replica by the softmax of the
costs, scaled to lie between 0 and 1, so that equal requests do not all go to one place.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.base.technique import Technique
from orrery.serving.batching import DRAWS, READS_PREFIXES


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Weight of a cached token, randomness of the choice, and tokens of a shared block (as the traffic has them)."""

    overlap_weight_ratio: float = 1.0
    temperature_ratio: float = 0.0
    block_tokens: float = 16.0


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
    """The replica of least cost, the first among equals; by chance where there is a temperature."""
    best, low, high = 0, 0.0, 0.0
    for k in range(len(tokens)):
        cost = tokens[k] - knobs[0] * knobs[2] * prefix_blocks[k]
        if k == 0 or cost < low:
            best, low = k, cost
        if k == 0 or cost > high:
            high = cost
    if knobs[1] <= 0.0 or high <= low:
        return best
    total = 0.0
    for k in range(len(tokens)):
        cost = tokens[k] - knobs[0] * knobs[2] * prefix_blocks[k]
        total += np.exp((low - cost) / (high - low) / knobs[1])
    left = first_draw * total
    for k in range(len(tokens)):
        cost = tokens[k] - knobs[0] * knobs[2] * prefix_blocks[k]
        left -= np.exp((low - cost) / (high - low) / knobs[1])
        if left <= 0.0:
            return k
    return len(tokens) - 1


TECHNIQUE = Technique(
    name="kv-cost",
    extension_point="serving.route",
    rule=route,
    knobs=Knobs,
    gains="Cached prompts and even load are one cost: a long shared prompt may go to a busy replica, a short one not.",
    costs="The router must know what every replica holds and has to do.",
    claims=("nvidia-dynamo-kv-router",),
    measure="how many leading tokens your prompts share",
    traits=frozenset({DRAWS, READS_PREFIXES}),
)
