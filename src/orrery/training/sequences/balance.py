"""Sequences put together, and groups of ranks put to work, so that all end at about the same time."""

import heapq
from bisect import bisect
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.sequences.lengths import Floats, Ints


def packed(lengths: Ints, limit_tokens: int) -> list[Ints]:
    """Indices of sequences that share a micro-batch of at most ``limit_tokens``, in order of arrival (next fit)."""
    bins: list[list[int]] = [[]]
    held = 0
    for i, tokens in enumerate(lengths.tolist()):
        if tokens > limit_tokens:
            raise ScenarioError(
                f"packing: a sequence of {tokens} tokens does not fit {limit_tokens}; write a larger limit."
            )
        if held + tokens > limit_tokens:
            bins.append([])
            held = 0
        bins[-1].append(i)
        held += tokens
    return [np.array(one, dtype=np.int64) for one in bins if one]


def spread(costs_s: Floats, tokens: Ints, num_bins: int, limit_tokens: int) -> list[Ints]:
    """Indices in bins of nearly equal cost, none above ``limit_tokens``: longest first into the least loaded.

    More bins are opened where the tokens do not fit those there are.
    """
    loads = [(0.0, i) for i in range(num_bins)]
    bins: list[list[int]] = [[] for _ in range(num_bins)]
    held = [0] * num_bins
    for item in np.argsort(-costs_s, kind="stable").tolist():
        full: list[tuple[float, int]] = []
        while loads and held[loads[0][1]] + int(tokens[item]) > limit_tokens:
            full.append(heapq.heappop(loads))
        if not loads:
            bins.append([])
            held.append(0)
            heapq.heappush(loads, (0.0, len(bins) - 1))
        load, place = heapq.heappop(loads)
        bins[place].append(item)
        held[place] += int(tokens[item])
        heapq.heappush(loads, (load + float(costs_s[item]), place))
        for entry in full:
            heapq.heappush(loads, entry)
    return [np.array(one, dtype=np.int64) for one in bins if one]


@dataclass(frozen=True, slots=True, kw_only=True)
class RankGroup:
    """A piece of work that ``degree`` ranks do together."""

    time_s: float
    degree: int


def finish_s(gangs: Sequence[RankGroup], num_ranks: int) -> Floats:
    """When ranks are done, the soonest first: longest gangs first, each on those that are free soonest, all at once."""
    free = [0.0] * num_ranks
    for gang in sorted(gangs, key=lambda g: (-g.time_s, -g.degree)):
        if gang.degree > num_ranks:
            raise ScenarioError(f"gang: needs {gang.degree} ranks of {num_ranks}; use more devices.")
        end_s = free[gang.degree - 1] + gang.time_s
        del free[: gang.degree]
        at = bisect(free, end_s)
        free[at:at] = [end_s] * gang.degree
    return np.array(free)
