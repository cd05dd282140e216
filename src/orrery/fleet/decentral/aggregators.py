"""Rules that join what workers send when some of them lie: vectors (workers, features) to one vector.

``mean`` takes all at their word. ``median`` and ``trimmed_mean`` look at each number alone; ``nearest_neighbours``
(Krum) follows the one vector that lies closest to the others. ``flag`` looks for a subspace Y of few dimensions that
rebuilds as many of the directions as well as it can,

    min over Y of   sum over workers of  sqrt(1 - |Y' g|^2 / |g|^2)

by least squares whose weights are revised in turn, and returns what of the mean lies in Y. A vector that no other
resembles is rebuilt badly and loses its weight, unless
there are dimensions enough for it to have one of its own. Almasi et al., Flag Aggregator (2023).
"""

from collections.abc import Callable, Mapping

import numpy as np

from orrery.fleet.decentral.compressor import Floats

REVISIONS, MIN_MISSED = 20, 1e-9
"""Rounds of least squares, and the least of a vector's square that counts as missed: it bounds the weights."""

Aggregator = Callable[[Floats, int], Floats]
"""A rule over the vectors that were sent and how many of the senders may lie."""


def mean(sent: Floats, num_liars: int) -> Floats:
    """All alike."""
    return sent.mean(axis=0)


def median(sent: Floats, num_liars: int) -> Floats:
    """The middle of each number."""
    return np.median(sent, axis=0)


def trimmed_mean(sent: Floats, num_liars: int) -> Floats:
    """The mean of each number without as many of its largest and of its smallest as there may be liars."""
    return np.sort(sent, axis=0)[num_liars : len(sent) - num_liars].mean(axis=0)


def nearest_neighbours(sent: Floats, num_liars: int) -> Floats:
    """The vector with the least sum of squared distances to its nearest others, all but liars and two (Krum)."""
    apart = ((sent[:, None, :] - sent[None, :, :]) ** 2).sum(axis=2)
    counted = max(1, len(sent) - num_liars - 2)
    return sent[np.sort(apart, axis=1)[:, 1 : counted + 1].sum(axis=1).argmin()]


def flag(sent: Floats, num_dimensions: int) -> Floats:
    """The mean's part in the subspace of that many dimensions which rebuilds the directions best."""
    lengths = np.linalg.norm(sent, axis=1, keepdims=True)
    units = sent / np.maximum(lengths, np.finfo(np.float64).tiny)
    alike, weights = units @ units.T, np.ones(len(sent))
    joins = np.zeros((len(sent), 0))
    for _ in range(REVISIONS):
        # the subspace's axes are units.T @ joins: of the weighted directions the largest principal ones
        root = np.sqrt(weights)
        squares, axes = np.linalg.eigh(root[:, None] * alike * root)
        spanning = squares > squares[-1] * MIN_MISSED
        joins = (root[:, None] * axes[:, spanning] / np.sqrt(squares[spanning]))[:, -num_dimensions:]
        missed = 1.0 - ((alike @ joins) ** 2).sum(axis=1)
        weights = 1.0 / np.sqrt(np.maximum(missed, MIN_MISSED))
    return units.T @ (joins @ (joins.T @ (units @ sent.mean(axis=0))))


AGGREGATORS: Mapping[str, Aggregator] = {
    "mean": mean,
    "median": median,
    "trimmed mean": trimmed_mean,
    "nearest neighbours": nearest_neighbours,
}
