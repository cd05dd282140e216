"""Block ids of token sequences that share beginnings: each a run of shared ids, then a run of ids of its own."""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Ints = NDArray[np.int64]

MAX_IDS = 250_000_000
"""Two gigabytes of ids; longer traffic needs larger blocks."""


def ranges(first: Ints, length: Ints) -> Ints:
    """The numbers first, first + 1, … of each range, one range behind the other.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    first, length = first[length > 0], length[length > 0]
    step = np.ones(int(length.sum()), dtype=np.int64)
    if step.size:
        start = np.cumsum(length) - length
        step[0] = first[0]
        step[start[1:]] = first[1:] - first[:-1] - length[:-1] + 1
    return np.cumsum(step, out=step)


def shared_then_own(
    shared_first: Ints, shared_blocks: Ints, own_first: Ints, own_blocks: Ints, block_tokens: int
) -> tuple[Ints, Ints]:
    """(prefix_start, prefix_ids) of requests, one entry each: a run of blocks that others share, then its own run."""
    ends = np.cumsum(shared_blocks + own_blocks)
    if ends.size and ends[-1] > MAX_IDS:
        least = block_tokens * int(-(-ends[-1] // MAX_IDS))
        raise ScenarioError(
            f"traffic: block_tokens: got {block_tokens}: {ends[-1]:,} blocks in all; write {least} or more, or a "
            "smaller count."
        )
    pairs = np.stack((shared_first, own_first), axis=1).ravel()
    lengths = np.stack((shared_blocks, own_blocks), axis=1).ravel()
    return np.concatenate((np.zeros(1, dtype=np.int64), ends)), ranges(pairs, lengths)
