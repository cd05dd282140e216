# pyright: basic
"""Priority queues over items 0, 1, …, and a clock of several machines.

Any number of pairing heaps share arrays with one entry an item, so a queue costs nothing until something waits
in it [fredman-1986]. Smaller keys leave first; equal keys leave in order of the items' ranks. The clock is a
tournament: each machine has one next moment, the earliest wins, and a change replays log2(machines) matches.
"""

import numpy as np

from orrery.base.compiled import Floats, Ints, Ints2, compiled

CHILD, SIBLING, BEFORE = range(3)


@compiled
def merged(a: int, b: int, keys: Floats, links: Ints2, ranks: Ints) -> int:
    """The root of two heaps put together; either may be empty."""
    if a < 0:
        return b
    if b < 0:
        return a
    if keys[b] < keys[a] or (keys[b] == keys[a] and ranks[b] < ranks[a]):
        a, b = b, a
    following = links[a, CHILD]
    links[b, SIBLING], links[b, BEFORE], links[a, CHILD] = following, a, b
    if following >= 0:
        links[following, BEFORE] = b
    return a


@compiled
def pushed(root: int, item: int, key: float, keys: Floats, links: Ints2, ranks: Ints) -> int:
    """The root after ``item`` joins with ``key``."""
    keys[item] = key
    links[item, CHILD] = -1
    links[item, SIBLING] = -1
    return merged(root, item, keys, links, ranks)


@compiled
def popped(root: int, keys: Floats, links: Ints2, ranks: Ints) -> int:
    """The root after the smallest item, which is ``root``, left: its children are merged in pairs, then together."""
    rest, pairs = links[root, CHILD], -1
    links[root, CHILD] = -1
    while rest >= 0:
        a, b = rest, links[rest, SIBLING]
        if b < 0:
            rest = -1
        else:
            rest = links[b, SIBLING]
            links[b, SIBLING] = -1
        links[a, SIBLING] = -1
        both = merged(a, b, keys, links, ranks)
        links[both, SIBLING] = pairs
        pairs = both
    root = -1
    while pairs >= 0:
        following = links[pairs, SIBLING]
        links[pairs, SIBLING] = -1
        root = merged(root, pairs, keys, links, ranks)
        pairs = following
    return root


@compiled
def removed(root: int, item: int, keys: Floats, links: Ints2, ranks: Ints) -> int:
    """The root after ``item``, which is in the heap, left: what stood below it is put back."""
    if item == root:
        return popped(root, keys, links, ranks)
    before, following = links[item, BEFORE], links[item, SIBLING]
    links[before, CHILD if links[before, CHILD] == item else SIBLING] = following
    if following >= 0:
        links[following, BEFORE] = before
    return merged(root, popped(item, keys, links, ranks), keys, links, ranks)


def clock_of(size: int) -> tuple[Floats, Ints]:
    """Moments (all never) and the tournament of ``size`` machines."""
    width = 1
    while width < size:
        width *= 2
    moments = np.full(width, np.inf)
    winners = np.zeros(2 * width, np.int64)
    for k in range(width):
        winners[width + k] = k
    for k in range(width - 1, 0, -1):
        winners[k] = winners[2 * k]
    return moments, winners


@compiled
def set_moment(moments: Floats, winners: Ints, machine: int, moment: float) -> None:
    """The machine's next moment becomes ``moment``; among equals the lower number wins."""
    moments[machine] = moment
    k = (machine + moments.size) >> 1
    while k >= 1:
        a, b = winners[2 * k], winners[2 * k + 1]
        winners[k] = a if moments[a] <= moments[b] else b
        k >>= 1
