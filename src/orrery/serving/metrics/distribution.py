"""Distribution of a latency: mean, standard deviation, percentiles, and the whole curve.

Percentiles are by linear interpolation between order statistics (numpy's default, type 7 of Hyndman and Fan,
"Sample Quantiles in Statistical Packages", The American Statistician 50(4), 1996). The standard deviation is that of
the population, as in ``vllm bench serve``.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.serving.requests import Floats
from orrery.serving.simulation.result import GAP_BINS_PER_DECADE, GAP_LEAST_S

CURVE_SHARES: Floats = np.array(
    sorted({round(p / n, 6) for n, first in ((100, 0), (2000, 1980), (10_000, 9990)) for p in range(first, n + 1)})
)
"""Shares of the requests at which the whole curve is kept: every percent, and finer in the tail."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """One latency over many requests, or over many gaps; ``nan`` where there are none."""

    count: int
    mean_s: float
    std_s: float
    median_s: float
    percentiles: tuple[float, ...]  # which: 50, 90, 99.9, …
    percentiles_s: Floats
    curve_s: Floats  # at CURVE_SHARES

    def percentile_s(self, percent: float) -> float:
        """The percentile that was asked for as ``percent``."""
        return float(self.percentiles_s[self.percentiles.index(percent)])


def distribution(values_s: Floats, percentiles: Sequence[float]) -> Distribution:
    """The spread of ``values_s``: one sort, then every quantile is a look-up."""
    if not values_s.size:
        return _nothing(percentiles)
    mean_s = float(values_s.mean())
    std_s = float(np.sqrt(max(float(values_s @ values_s) / values_s.size - mean_s**2, 0.0)))
    if std_s < 1e-3 * mean_s:  # the difference of squares has lost its digits
        std_s = float(values_s.std())
    return _read_off(
        _order_statistics(np.sort(values_s), _shares(percentiles)), values_s.size, mean_s, std_s, percentiles
    )


def from_gaps(counts: Floats, sum_s: float, squares_s2: float, percentiles: Sequence[float]) -> Distribution:
    """The spread of gaps that were only counted in bins: mean and deviation exact, percentiles to a bin's width.

    Inside a bin the counts are spread evenly over the logarithm of the gap. The order statistic i of n stands
    at (i + 1/2) / n of the counts, so that a percentile means what it does for values in a row.
    """
    total = float(counts.sum())
    if not total:
        return _nothing(percentiles)
    mean_s = sum_s / total
    std_s = float(np.sqrt(max(squares_s2 / total - mean_s**2, 0.0)))
    filled = np.flatnonzero(counts)
    before = np.concatenate([[0.0], np.cumsum(counts[filled])])
    ranks = _shares(percentiles) * (total - 1.0) + 0.5
    which = np.clip(np.searchsorted(before, ranks, side="right") - 1, 0, filled.size - 1)
    inside = (ranks - before[which]) / counts[filled[which]]
    values_s = GAP_LEAST_S * 10.0 ** ((filled[which] + np.clip(inside, 0.0, 1.0)) / GAP_BINS_PER_DECADE)
    return _read_off(values_s, round(total), mean_s, std_s, percentiles)


def _shares(percentiles: Sequence[float]) -> Floats:
    """The median, the percentiles asked for, and the curve, as shares of one."""
    return np.concatenate([[0.5], np.asarray(percentiles, dtype=np.float64) / 100.0, CURVE_SHARES])


def _order_statistics(ordered_s: Floats, shares: Floats) -> Floats:
    """Values at ``shares`` of sorted ``ordered_s``, linear in between."""
    at = shares * (ordered_s.size - 1)
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, ordered_s.size - 1)
    values: Floats = ordered_s[low] + (ordered_s[high] - ordered_s[low]) * (at - low)
    return values


def _read_off(values_s: Floats, count: int, mean_s: float, std_s: float, percentiles: Sequence[float]) -> Distribution:
    """Cut what ``_shares`` put together."""
    end = 1 + len(percentiles)
    return Distribution(
        count=count,
        mean_s=mean_s,
        std_s=std_s,
        median_s=float(values_s[0]),
        percentiles=tuple(percentiles),
        percentiles_s=values_s[1:end],
        curve_s=values_s[end:],
    )


def _nothing(percentiles: Sequence[float]) -> Distribution:
    return _read_off(np.full(_shares(percentiles).size, np.nan), 0, np.nan, np.nan, percentiles)
