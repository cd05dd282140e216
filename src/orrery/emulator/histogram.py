"""Counts of values by size, in the buckets that a metric is read in; memory does not grow with what is counted."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate

TTFT_S = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
    160.0,
    640.0,
    2560.0,
)
GAP_S = (
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
)
REQUEST_S = (
    0.3,
    0.5,
    0.8,
    1.0,
    1.5,
    2.0,
    2.5,
    5.0,
    10.0,
    15.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    120.0,
    240.0,
    480.0,
    960.0,
    1920.0,
    7680.0,
)
LAG_S = (
    0.0005,
    0.001,
    0.002,
    0.003,
    0.004,
    0.005,
    0.006,
    0.008,
    0.01,
    0.015,
    0.02,
    0.03,
    0.05,
    0.075,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
)
CHOICES = (1.0, 2.0, 5.0, 10.0, 20.0)
PREEMPTIONS = (0.0, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
"""vLLM's buckets, of 0.33; and our own for the lag."""


def token_buckets(most_tokens: int) -> tuple[float, ...]:
    """1, 2, 5, 10, … up to the longest sequence."""
    found = [float(d * 10**e) for e in range(len(str(most_tokens))) for d in (1, 2, 5)]
    return tuple(x for x in found if x <= most_tokens)


class Histogram:
    """How many values lie in each bucket, and their sum."""

    __slots__ = ("_buckets", "_counts", "total")

    def __init__(self, buckets: Sequence[float]) -> None:
        self._buckets, self._counts, self.total = tuple(buckets), [0] * (len(buckets) + 1), 0.0

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._buckets, value)] += 1
        self.total += value

    @property
    def cumulated(self) -> list[tuple[str, float]]:
        """(upper end, values up to it), as Prometheus reads it."""
        ends = [*map(str, self._buckets), "+Inf"]
        return list(zip(ends, map(float, accumulate(self._counts)), strict=True))
