"""A few constants from a few measurements: the most probable ones, and how much is left unknown.

The unknowns x (logarithms of constants) have a normal prior; a measurement says log(predicted / measured) = e(x) with
normal noise of its own size. The most probable x minimises

    sum_i rho(e_i / noise_i) + (x - prior)' P (x - prior),      P the inverse of the prior's covariance,

by Gauss-Newton with halved steps. rho is Huber's: a measurement far off pulls no harder than one ``BEND`` noises away.
The covariance that is left is the inverse of the curvature there (Laplace's approximation).
Source: Gelman et al., Bayesian Data Analysis, chapters 4 and 13; Huber 1964.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Errors = Callable[[Floats], tuple[Floats, Floats]]
"""At some unknowns: log(predicted / measured) of every measurement, and its slopes (measurements x unknowns)."""

BEND = 2.0
ROUNDS = 30
SHORTEST_STEP = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Posterior:
    """Posterior of the unknowns: the most probable values, and the covariance of the remaining uncertainty."""

    mean: Floats
    covariance: Floats

    def variance_of(self, slopes: Floats) -> Floats:
        """Variance of log predictions whose slopes (predictions x unknowns) are these."""
        return np.asarray(np.sum((slopes @ self.covariance) * slopes, axis=1), dtype=np.float64)


def settle(errors: Errors, prior: Posterior, noise: Floats, start: Floats | None = None) -> Posterior:
    """The posterior after measurements with these ``errors``, each with its own ``noise`` (relative, one sigma).

    The search begins at ``start``, where that is known to be near; else at the prior.
    """
    precision = np.asarray(np.linalg.inv(prior.covariance), dtype=np.float64)
    x: Floats = (prior.mean if start is None else start).copy()
    error, slopes = errors(x)
    loss = _loss(error / noise, x - prior.mean, precision)
    for _ in range(ROUNDS):
        weight = _weights(error / noise) / noise**2
        curvature = slopes.T @ (weight[:, None] * slopes) + precision
        step = -np.linalg.solve(curvature, slopes.T @ (weight * error) + precision @ (x - prior.mean))
        while np.abs(step).max() > SHORTEST_STEP:
            tried, tried_slopes = errors(x + step)
            lower = _loss(tried / noise, x + step - prior.mean, precision)
            if lower < loss:
                break
            step = step / 2
        else:
            break
        x, error, slopes, loss = x + step, tried, tried_slopes, lower
    weight = _weights(error / noise) / noise**2
    left = np.linalg.inv(slopes.T @ (weight[:, None] * slopes) + precision)
    return Posterior(mean=x, covariance=np.asarray(left, dtype=np.float64))


def most_telling(prior: Posterior, candidates: Floats, targets: Floats, noise: Floats) -> tuple[int, float]:
    """The candidate measurement after which the targets are least uncertain, and by how much their variance falls.

    Rows of ``candidates`` and ``targets`` are slopes of log predictions; measuring candidate c with its ``noise`` takes
    (t' C c)^2 / (c' C c + noise^2) off the variance of target t (C the covariance): the A-optimal choice.
    """
    shared = targets @ prior.covariance @ candidates.T
    gain = np.sum(shared**2, axis=0) / (prior.variance_of(candidates) + noise**2)
    best = int(np.argmax(gain))
    return best, float(gain[best]) / max(1, len(targets))


def bent(scaled: Floats) -> Floats:
    """Huber's cost of errors in units of their noise: squares up to ``BEND``, straight beyond."""
    size = np.abs(scaled)
    return np.where(size < BEND, size**2, 2 * BEND * size - BEND**2)


def _weights(scaled: Floats) -> Floats:
    return 1.0 / np.maximum(1.0, np.abs(scaled) / BEND)


def _loss(scaled: Floats, moved: Floats, precision: Floats) -> float:
    return float(np.sum(bent(scaled)) + moved @ precision @ moved)
