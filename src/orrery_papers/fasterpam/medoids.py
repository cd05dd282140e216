"""Swaps of medoids: what one exchange would change, evaluated for all medoids at once, and how often that is done.

A point that changes hands when candidate c replaces medoid m either was m's (then it goes to c or to its second
nearest) or goes to c whichever medoid leaves. The second part is shared by all m, so one pass over the points prices c
against every medoid; the original evaluates each of the k pairs on its own:

    evaluations of an iteration = k (n - k) n, as published; (n - k) n, shared
    eager: n for every candidate that is looked at, and a swap as soon as one pays

Schubert and Rousseeuw, arXiv 2008.05171.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MIN_GAIN = 1e-9
"""Least gain of a swap, as a share of the mean distance: below, a swap is rounding error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swapped:
    """Medoids that no swap improves, and the work until they were found."""

    medoids: tuple[int, ...]
    num_swaps: int
    num_iterations: int  # looks at all candidates, the last one in vain
    num_candidates: int  # looked at, over all iterations

    def num_evaluations(self, num_points: int, *, is_shared: bool) -> float:
        """Points that were evaluated: once a candidate, or once a candidate and medoid."""
        return float(self.num_candidates) * num_points * (1 if is_shared else len(self.medoids))


def loss(distances: Floats, medoids: Sequence[int]) -> float:
    """Sum of the points' distances to the nearest of those medoids."""
    return float(distances[list(medoids)].min(axis=0).sum())


def built(distances: Floats, num_medoids: int) -> list[int]:
    """The first medoids, each the point that lowers the loss most."""
    nearest = np.full(len(distances), np.inf)
    chosen: list[int] = []
    for _ in range(num_medoids):
        best = int(np.argmin(np.minimum(distances, nearest).sum(axis=1)))
        chosen.append(best)
        nearest = np.minimum(nearest, distances[best])
    return chosen


def best_swaps(distances: Floats, first: list[int]) -> Swapped:
    """One swap an iteration, the best of all pairs."""
    medoids, swaps, looks, least = list(first), 0, 0, least_change(distances)
    while True:
        changes = _changes(distances, _held(distances, medoids))
        looks += 1
        candidate, place = np.unravel_index(int(np.argmin(changes)), changes.shape)
        if changes[candidate, place] >= least:
            break
        medoids[int(place)] = int(candidate)
        swaps += 1
    others = len(distances) - len(medoids)
    return _swapped(medoids, swaps, looks, looks * others)


def eager_swaps(distances: Floats, first: list[int]) -> Swapped:
    """A swap as soon as a candidate pays; until all candidates in a row do not."""
    medoids, held = list(first), _held(distances, list(first))
    swaps, seen, looked, idle = 0, 0, 0, 0
    count, least = len(distances), least_change(distances)
    while idle < count:
        candidate = seen % count
        seen, idle = seen + 1, idle + 1
        if candidate in medoids:
            continue
        looked += 1
        changes = _changes(distances[candidate : candidate + 1], held)[0]
        place = int(np.argmin(changes))
        if changes[place] < least:
            medoids[place], swaps, idle = candidate, swaps + 1, 0
            held = _held(distances, medoids)
    return _swapped(medoids, swaps, -(-seen // count), looked)


def least_change(distances: Floats) -> float:
    """The smallest change of the loss that counts as one; less is rounding."""
    return -MIN_GAIN * float(distances.mean())


def _held(distances: Floats, medoids: list[int]) -> tuple[Floats, Floats, Ints, Ints]:
    """Each point's distance to its medoid and to the next; points by their medoids, and where each medoid's begin."""
    to_medoids = distances[medoids]
    owner = np.argmin(to_medoids, axis=0)
    nearest, second = np.partition(to_medoids, 1, axis=0)[:2]
    order = np.argsort(owner, kind="stable")
    return nearest, second, order, np.searchsorted(owner[order], np.arange(len(medoids)))


def _changes(to: Floats, held: tuple[Floats, Floats, Ints, Ints]) -> Floats:
    """By candidate and medoid, how the loss would change if the one took the other's place."""
    nearest, second, order, starts = held
    shared = np.minimum(to - nearest, 0.0)
    own = np.minimum(to, second) - nearest - shared
    return np.add.reduceat(own[:, order], starts, axis=1) + shared.sum(axis=1, keepdims=True)


def _swapped(medoids: list[int], swaps: int, looks: int, candidates: int) -> Swapped:
    return Swapped(medoids=tuple(sorted(medoids)), num_swaps=swaps, num_iterations=looks, num_candidates=candidates)
