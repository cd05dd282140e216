"""Redundant experts: further copies of the experts that tokens choose most, placed so that ranks get even loads.

E experts and R copies more fill ep ranks with (E + R) / ep experts each. Copies are given out one by one, each to the
expert whose copies carry most (its share over their number); then copies go to ranks from the fullest down, each to
the lightest rank that has room. The tokens of an expert go round its copies. [deepseek-v3] section 3.4, [eplb]
"""

from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def copies_of(share: Floats, num_redundant: int) -> Ints:
    """How many copies every expert has: at least one each, ``num_redundant`` more in all."""
    copies = np.ones(len(share), dtype=np.int64)
    waiting = [(-float(s), expert) for expert, s in enumerate(share)]
    heapify(waiting)
    for _ in range(num_redundant):
        _, expert = heappop(waiting)
        copies[expert] += 1
        heappush(waiting, (-float(share[expert]) / int(copies[expert]), expert))
    return copies


def placed(share: Floats, copies: Ints, num_ranks: int) -> Ints:
    """The expert of every place, rank after rank; each rank has as many places."""
    expert = np.repeat(np.arange(len(share)), copies)
    load = (share / copies)[expert]
    each = len(expert) // num_ranks
    held: list[list[int]] = [[] for _ in range(num_ranks)]
    open_ranks = [(0.0, rank) for rank in range(num_ranks)]
    for place in np.argsort(-load, kind="stable"):
        total, rank = heappop(open_ranks)
        held[rank].append(int(expert[place]))
        if len(held[rank]) < each:
            heappush(open_ranks, (total + float(load[place]), rank))
    return np.concatenate([np.array(one, dtype=np.int64) for one in held])


def spread_over(drawn: Floats, places: Ints) -> Floats:
    """Tokens of every place for tokens of every expert, a draw a line: copies take turns, so that none gets two more
    than another; which copy is first changes with the draw.
    """
    each = np.bincount(places, minlength=drawn.shape[1])
    order, first = np.argsort(places, kind="stable"), np.cumsum(each) - each
    turn = np.empty_like(places)
    turn[order] = np.arange(len(places)) - first[places[order]]
    copies = each[places]
    behind = (turn + np.arange(len(drawn))[:, None]) % copies
    return np.ceil((drawn[:, places] - behind) / copies)
