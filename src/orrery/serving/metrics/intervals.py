"""Sampling error of a simulated mean or percentile: 95 % confidence intervals by batch means.

Successive requests wait in the same queue, so their latencies are not independent and the textbook s / sqrt(n) is far
too narrow. Cut into a few long batches in order of arrival, the batches' own means are nearly independent:

    value +- t(k - 1) x (standard deviation of the k batch values) / sqrt(k)

Method: Law, *Simulation Modeling and Analysis*, 5th ed., section 9.5.3. Number of batches: Schmeiser, "Batch size
effects in the analysis of simulation output", Operations Research 30(3), 1982: beyond 10 to 30 they gain nothing.

A percentile has no such mean, but the share of requests below it has. That share's interval, read off the whole run's
distribution, is the percentile's: Woodruff, "Confidence intervals for medians and other position measures", Journal of
the American Statistical Association 47, 1952.
"""

from collections.abc import Mapping

import numpy as np

from orrery.serving.metrics.distribution import CURVE_SHARES, Distribution
from orrery.serving.requests import Floats

BATCHES = 20
STUDENT_T = 2.0930
"""97.5 % quantile of Student's t with ``BATCHES`` - 1 degrees of freedom."""

MIN_REQUESTS = 200
"""Below ten requests a batch, batches hang together and the interval would be too narrow."""

TAIL_SHARE = 0.99
MIN_FOR_TAIL = 2000
"""A batch needs a hundred requests before one of them is beyond its 99th percentile."""

_TAIL = int(np.searchsorted(CURVE_SHARES, TAIL_SHARE))

Bounds = tuple[float, float]
"""Low and high end, in the unit of the value between them."""


def mean_bounds(values_s: Floats) -> Bounds | None:
    """Where the mean of ``values_s``, in order of arrival, lies at 95 %; None for too few."""
    if values_s.size < MIN_REQUESTS:
        return None
    mean_s, half_s = float(values_s.mean()), _half(_batches(values_s).mean(axis=1))
    return max(mean_s - half_s, 0.0), mean_s + half_s


def tail_bounds(values_s: Floats, curve_s: Floats) -> Bounds | None:
    """The same of the 99th percentile; ``curve_s`` is the distribution of all ``values_s`` at ``CURVE_SHARES``.

    None, too, where even the largest value may lie below it: such a run is too short to bound its tail.
    """
    if values_s.size < MIN_FOR_TAIL:
        return None
    half = _half((_batches(values_s) <= curve_s[_TAIL]).mean(axis=1))
    if TAIL_SHARE + half >= 1.0:
        return None
    low_s, high_s = np.interp((TAIL_SHARE - half, TAIL_SHARE + half), CURVE_SHARES, curve_s)
    return float(low_s), float(high_s)


def confidence(columns_s: Mapping[str, Floats], spreads: Mapping[str, Distribution]) -> dict[str, Bounds] | None:
    """``mean_<name>_s`` and ``p99_<name>_s`` of each column; a bound is left out where there are too few requests."""
    found: dict[str, Bounds] = {}
    for name, values_s in columns_s.items():
        for word, bounds in (
            (f"mean_{name}_s", mean_bounds(values_s)),
            (f"p99_{name}_s", tail_bounds(values_s, spreads[name].curve_s)),
        ):
            if bounds is not None:
                found[word] = bounds
    return found or None


def _batches(values_s: Floats) -> Floats:
    """One batch a row; what is left over at the start is dropped, it is the least settled."""
    size = values_s.size // BATCHES
    return values_s[values_s.size - size * BATCHES :].reshape(BATCHES, size)


def _half(batches: Floats) -> float:
    """Half the width of the interval around the mean of the batches' values."""
    return STUDENT_T * float(batches.std(ddof=1)) / BATCHES**0.5
