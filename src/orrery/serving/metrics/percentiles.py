"""Limits on percentiles of a latency: ``p99 of ttft <= 1 s`` holds where 99 of 100 requests are as quick.

A refused request is infinitely late, so that a service cannot meet a limit by turning requests away.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.serving.metrics.latencies import Latencies


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileLimit:
    """An objective on a percentile of ``ttft``, ``tpot`` or ``e2el``."""

    metric: str
    share_frac: float  # 0.99 for the 99th percentile
    limit_s: float

    @property
    def percent(self) -> float:
        """99 for the 99th percentile."""
        return round(self.share_frac * 100.0, 9)

    @property
    def name(self) -> str:
        """``p99_ttft``."""
        return f"p{self.percent:g}_{self.metric}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileFound:
    """Outcome of such an objective."""

    limit: PercentileLimit
    value_s: float  # infinite where it falls on a refused request
    attained_frac: float  # of the requests sent that are within the limit

    @property
    def is_met(self) -> bool:
        """Whether the percentile is within its limit."""
        return self.value_s <= self.limit.limit_s


def percentiles_found(done: Latencies, limits: Sequence[PercentileLimit]) -> tuple[PercentileFound, ...]:
    """Each percentile of the requests sent, beside its limit. Answers of one token have no ``tpot``: they count in
    the share, not in the percentile."""
    refused = np.full(done.num_sent - done.finish_s.size, np.inf)
    found: list[PercentileFound] = []
    for limit in limits:
        each_s = {"ttft": done.ttft_s, "tpot": done.tpot_s, "e2el": done.e2el_s}[limit.metric]
        counted_s = np.sort(np.concatenate([done.long_tpot_s if limit.metric == "tpot" else each_s, refused]))
        within = float((each_s <= limit.limit_s).sum()) / max(done.num_sent, 1)
        value_s = _quantile_s(counted_s, limit.share_frac)
        found.append(PercentileFound(limit=limit, value_s=value_s, attained_frac=within))
    return tuple(found)


def _quantile_s(sorted_s: np.ndarray[tuple[int], np.dtype[np.float64]], share: float) -> float:
    """Linear between order statistics; an infinite one is not interpolated away."""
    if not sorted_s.size:
        return 0.0
    at = share * (sorted_s.size - 1)
    low, high = float(sorted_s[int(at)]), float(sorted_s[min(int(at) + 1, sorted_s.size - 1)])
    rest = at - int(at)
    return low if not rest or low == high else low + (high - low) * rest
