"""Reuse of prompt blocks that a trace names: exact stack distances under least-recently-used eviction [mattson-1970].

Blocks of equal ids hold equal tokens after equal beginnings, whoever sent them. A request finds the longest beginning
whose blocks are all held, then uses all of its blocks, the first one last, as engines evict from the end. A block lies
on the stack as deep as different blocks were used since, itself counted, and a cache of that many blocks or more holds
it: a beginning needs the deepest of its blocks. One pass is right for every size at once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.fleet.agents.stack import Sums
from orrery.fleet.agents.turns import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockReuse:
    """For each request that shares a beginning with any before: how long it is, and the cache that each block needs."""

    turn: Ints
    shared_tokens: Ints  # that an endless cache holds
    since_s: Floats  # since the end of that beginning was last used
    start: Ints  # turns + 1 offsets into needed_tokens
    needed_tokens: Ints  # of cache, so that the beginning up to and with a block is held
    block_tokens: int

    def hit_tokens(self, cache_tokens: float) -> Floats:
        """Return the tokens of each beginning that a cache of that many tokens holds."""
        held = np.concatenate(([0], np.cumsum(self.needed_tokens <= cache_tokens)))
        return (held[self.start[1:]] - held[self.start[:-1]]) * float(self.block_tokens)

    def size_for(self, turns_frac: float) -> float:
        """Return the least tokens of cache with which a share of these requests finds all that it shares."""
        needed = np.sort(self.needed_tokens[self.start[1:] - 1])
        return float(needed[min(max(int(np.ceil(turns_frac * needed.size)) - 1, 0), needed.size - 1)])

    def only(self, inside: NDArray[np.bool_]) -> "BlockReuse":
        """Return some of the requests."""
        counts = np.diff(self.start)
        return BlockReuse(
            turn=self.turn[inside],
            shared_tokens=self.shared_tokens[inside],
            since_s=self.since_s[inside],
            start=np.concatenate(([0], np.cumsum(counts[inside]))),
            needed_tokens=self.needed_tokens[np.repeat(inside, counts)],
            block_tokens=self.block_tokens,
        )


def block_reuse_of(at_s: Floats, start: Ints, ids: Ints, block_tokens: int) -> BlockReuse:
    """Return the reuse of requests in order of time, whose blocks are ``ids[start[k] : start[k + 1]]``."""
    sums = Sums(ids.size)
    place: dict[int, int] = {}
    used_s: dict[int, float] = {}
    turn: list[int] = []
    since_s: list[float] = []
    ends, needed = [0], list[int]()
    clock = 0
    edges, names, times = start.tolist(), ids.tolist(), at_s.tolist()
    for k, now_s in enumerate(times):
        blocks = names[edges[k] : edges[k + 1]]
        deepest, end = 0, -1
        for block in blocks:
            if block not in place:
                break
            deepest, end = max(deepest, len(place) - sums.until(place[block]) + 1), block
            needed.append(deepest)
        if end >= 0:
            turn.append(k)
            since_s.append(now_s - used_s[end])
            ends.append(len(needed))
        for block in reversed(blocks):
            if block in place:
                sums.add(place[block], -1)
            place[block], used_s[block] = clock, now_s
            sums.add(clock, 1)
            clock += 1
    counts = np.diff(np.array(ends, dtype=np.int64))
    return BlockReuse(
        turn=np.array(turn, dtype=np.int64),
        shared_tokens=counts * block_tokens,
        since_s=np.array(since_s, dtype=np.float64),
        start=np.array(ends, dtype=np.int64),
        needed_tokens=np.array(needed, dtype=np.int64) * block_tokens,
        block_tokens=block_tokens,
    )
