"""Electing a leader on a ring of numbered nodes, in rounds: when the ordinary node knows, and when the last one does.

In r rounds a node sees r neighbours on either side. It is no leader as soon as it sees a larger number, and the leader
knows only once it has seen all. With numbers in random order the nearest larger one is further than r with probability
1 / (2 r + 1), so the mean over nodes grows like half the logarithm of the ring, the maximum like half the ring.
"""

import math

import numpy as np
from numpy.typing import NDArray

from orrery.engine.streams import stream


def rounds(num_nodes: int, seed: int = 0) -> NDArray[np.int64]:
    """After how many rounds each node of a ring with random numbers has its answer."""
    numbers = stream(seed, "ring/numbers").permutation(num_nodes)
    right = _to_larger(numbers)
    left = _to_larger(numbers[::-1])[::-1]
    return np.minimum(np.minimum(left, right), math.ceil((num_nodes - 1) / 2))


def _to_larger(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Distance to the right of the next larger number, around the ring; the length of the ring for the largest."""
    count = numbers.size
    twice, found, waiting = np.concatenate([numbers, numbers]).tolist(), [count] * count, list[int]()
    for place, number in enumerate(twice):
        while waiting and twice[waiting[-1]] < number:
            before = waiting.pop()
            if before < count:
                found[before] = place - before
        waiting.append(place)
    return np.array(found, dtype=np.int64)
