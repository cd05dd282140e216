"""How much was used since: exact stack distances of shared prefixes under least-recently-used eviction [mattson-1970].

A turn reads the beginning that it shares with its chain's turn before, then keeps all of its prompt and output. All
tokens of a turn were last used together, the first ones most recently, as engines evict from the end. So the tokens of
a turn are one run on the stack, its distance the tokens of all runs used since, and what later turns no longer share
stays behind as a shorter run. A cache of ``c`` tokens still holds the first ``c - distance`` tokens of the run. One
pass of n turns with sums over prefixes of the clock (a Fenwick tree) takes n log n steps and is right for every size at
once.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.fleet.agents.turns import Floats, Ints, Turns


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reuse:
    """For each turn that shares something: tokens used by others since, tokens shared, and the time since."""

    turn: Ints
    distance_tokens: Ints
    shared_tokens: Ints
    since_s: Floats

    def hit_tokens(self, cache_tokens: float) -> Floats:
        """Return the tokens of each turn's shared beginning that a cache of that many tokens still holds."""
        left: Floats = (cache_tokens - self.distance_tokens).astype(np.float64)
        return np.minimum(np.maximum(left, 0.0), self.shared_tokens.astype(np.float64))

    def size_for(self, turns_frac: float) -> float:
        """Return the least tokens of cache with which a share of the turns finds all that it shares."""
        needed = np.sort(self.distance_tokens + self.shared_tokens)
        return float(needed[min(max(int(np.ceil(turns_frac * needed.size)) - 1, 0), needed.size - 1)])

    def only(self, inside: NDArray[np.bool_]) -> "Reuse":
        """Return some of the turns."""
        return Reuse(
            turn=self.turn[inside],
            distance_tokens=self.distance_tokens[inside],
            shared_tokens=self.shared_tokens[inside],
            since_s=self.since_s[inside],
        )


def reuse_of(turns: Turns) -> Reuse:
    """Return the stack distance of every turn that shares a beginning with its chain's turn before."""
    sums = Sums(turns.count)
    held = [0] * turns.count
    last: dict[int, int] = {}
    found: list[tuple[int, int, int, float]] = []
    at = turns.at_s.tolist()
    rows = zip(
        turns.chain.tolist(),
        turns.input_tokens.tolist(),
        turns.output_tokens.tolist(),
        turns.shared_tokens.tolist(),
        strict=True,
    )
    total = 0
    for turn, (chain, prompt, output, shared) in enumerate(rows):
        before = last.get(chain)
        if before is not None and shared > 0:
            since = total - sums.until(before)
            reused = min(shared, held[before])
            found.append((turn, since, reused, at[turn] - at[before]))
            sums.add(before, -reused)
            held[before] -= reused
            total -= reused
        held[turn] = prompt + output
        sums.add(turn, held[turn])
        total += held[turn]
        last[chain] = turn
    columns = np.array(found, dtype=np.float64).reshape(-1, 4)
    whole = columns[:, :3].astype(np.int64)
    return Reuse(turn=whole[:, 0], distance_tokens=whole[:, 1], shared_tokens=whole[:, 2], since_s=columns[:, 3])


class Sums:
    """Sums over the first entries of a list whose entries change: a Fenwick tree."""

    def __init__(self, count: int) -> None:
        """All entries are 0."""
        self._tree = [0] * (count + 1)

    def add(self, index: int, amount: int) -> None:
        """Raise one entry."""
        index += 1
        while index < len(self._tree):
            self._tree[index] += amount
            index += index & -index

    def until(self, index: int) -> int:
        """Return the sum of the entries up to and with ``index``."""
        index += 1
        found = 0
        while index:
            found += self._tree[index]
            index -= index & -index
        return found
