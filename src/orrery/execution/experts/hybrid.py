"""Experts of a layer shared out between a device that keeps some of them, its host, and the link between the two.

Fixed: the device computes what it keeps, the host the rest. Greedy: of the rest the host takes the smallest load and
the link brings the largest one to the device, whichever is done first, one after the other; a host that is idle helps
with the smallest that the device keeps. While the link idles it brings experts of the next layer. What is kept follows
a score of every expert that fades with each token, so those used lately and often stay. [hybrimoe-2025]
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Work = Mapping[int, int]
"""Tokens of each expert that has any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shares:
    """Time of an expert on the device and on the host, by its tokens, and time to cross the link."""

    device_s: Callable[[int], float]
    host_s: Callable[[int], float]
    load_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """One layer: its time, what was brought to the device for it, and how long the link was busy."""

    time_s: float
    loaded: tuple[int, ...] = ()
    link_s: float = 0.0


def fixed(work: Work, resident: frozenset[int], shares: Shares) -> Shared:
    """Each side computes its own, at the same time."""
    device_s = sum(shares.device_s(n) for e, n in work.items() if e in resident)
    host_s = sum(shares.host_s(n) for e, n in work.items() if e not in resident)
    return Shared(time_s=max(device_s, host_s))


def greedy(work: Work, resident: frozenset[int], shares: Shares) -> Shared:
    """The rest dealt out one expert at a time; then the host helps the device while that is sooner done."""
    own = sorted((n for e, n in work.items() if e in resident), reverse=True)
    rest = sorted(((n, e) for e, n in work.items() if e not in resident), reverse=True)
    device_s, host_s, link_s = sum(shares.device_s(n) for n in own), 0.0, 0.0
    loaded: list[int] = []
    while rest:
        by_host_s = host_s + shares.host_s(rest[-1][0])
        by_link_s = max(link_s + shares.load_s, device_s) + shares.device_s(rest[0][0])
        if by_host_s <= by_link_s:
            host_s = by_host_s
            rest.pop()
        else:
            link_s, device_s = link_s + shares.load_s, by_link_s
            loaded.append(rest.pop(0)[1])
    while own and host_s + shares.host_s(own[-1]) < device_s:
        device_s -= shares.device_s(own[-1])
        host_s += shares.host_s(own.pop())
    return Shared(time_s=max(device_s, host_s), loaded=tuple(loaded), link_s=link_s)


FADING_FRAC, COUNTED_RATIO = 0.5, 2
"""How much of a score the newest step sets, and experts a token whose probabilities count, over those that it goes to:
0.5, and 12 for six (the authors' code, KScoreAwareCache)."""


def faded(worth: Floats, probabilities: Floats, each: int) -> Floats:
    """Scores after a step whose tokens, one a row, go to ``each`` experts: what a router nearly chose counts too."""
    counted = min(COUNTED_RATIO * each, worth.size)
    best = np.argpartition(-probabilities, counted - 1, axis=1)[:, :counted]
    seen = np.zeros_like(probabilities)
    np.put_along_axis(seen, best, np.take_along_axis(probabilities, best, axis=1), axis=1)
    return (1.0 - FADING_FRAC) * worth + FADING_FRAC * seen.mean(axis=0)
