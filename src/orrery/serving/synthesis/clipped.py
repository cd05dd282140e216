"""Means of clipped distributions, and the centre that keeps a mean although lengths below 1 are cut off.

A length is at least one token and at most what the context holds. Clipping moves the mean, and the mean decides the
load on a server, so the centre of the distribution is moved until the clipped mean is the one asked for.
"""

import math
from collections.abc import Callable
from statistics import NormalDist

from orrery.base.errors import ScenarioError

STANDARD = NormalDist()


def normal_mean(centre: float, std: float, most: float) -> float:
    """E[min(max(X, 1), most)] of a normal X."""
    low, high = (1.0 - centre) / std, (most - centre) / std
    below, above = STANDARD.cdf(low), STANDARD.cdf(-high)
    inside = centre * (STANDARD.cdf(high) - below) - std * (STANDARD.pdf(high) - STANDARD.pdf(low))
    return below + most * above + inside


def lognormal_mean(mu: float, sigma: float, most: float) -> float:
    """E[min(max(X, 1), most)] of a lognormal X = exp(mu + sigma z)."""
    low, high = -mu / sigma, (math.log(most) - mu) / sigma
    inside = STANDARD.cdf(high - sigma) - STANDARD.cdf(low - sigma)
    return STANDARD.cdf(low) + most * STANDARD.cdf(-high) + math.exp(mu + sigma**2 / 2.0) * inside


def normal_centre(mean: float, std: float, most: float) -> float:
    """The centre of the normal whose clipped mean is ``mean``."""
    reach = 40.0 * std + most
    return _solved(lambda centre: normal_mean(centre, std, most), mean, mean - reach, mean + reach, most)


def lognormal_centre(mean: float, sigma: float, most: float) -> float:
    """The mu of the lognormal whose clipped mean is ``mean``."""
    middle, reach = math.log(mean), 12.0 * sigma + sigma**2
    return _solved(lambda mu: lognormal_mean(mu, sigma, most), mean, middle - reach, middle + reach, most)


def _solved(clipped_mean: Callable[[float], float], mean: float, low: float, high: float, most: float) -> float:
    """By bisection: a clipped mean rises with the centre."""
    if not 1.0 < mean < most:
        raise ScenarioError(f"lengths: mean: got {mean:g} tokens; write a mean above 1 and below the most, {most:g}.")
    for _ in range(100):
        middle = (low + high) / 2.0
        low, high = (middle, high) if clipped_mean(middle) < mean else (low, middle)
    return (low + high) / 2.0
