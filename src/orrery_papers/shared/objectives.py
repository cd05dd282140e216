"""Objectives of papers: shares of good requests, percentiles of gaps, waits, and the tightest limits that hold."""

import numpy as np

from orrery.serving.metrics.distribution import from_gaps
from orrery.serving.metrics.latencies import latencies
from orrery.serving.simulation.result import Simulated


def attained_frac(run: Simulated, ttft_s: float, tpot_s: float, scale_ratio: float = 1.0) -> float:
    """Share of the requests sent whose first token and mean later token are both in time, all limits scaled."""
    done = latencies(run)
    good = (done.ttft_s <= ttft_s * scale_ratio) & (done.tpot_s <= tpot_s * scale_ratio)
    return float(good.sum()) / done.num_sent


def tightest_scale_ratio(run: Simulated, ttft_s: float, tpot_s: float, attainment_frac: float) -> float:
    """The least factor on both limits at which that share of the requests sent is still in time."""
    done = latencies(run)
    worst = np.maximum(done.ttft_s / ttft_s, done.tpot_s / tpot_s)
    refused = np.full(done.num_sent - worst.size, np.inf)
    return float(np.quantile(np.concatenate([worst, refused]), attainment_frac, method="inverted_cdf"))


def gap_s(run: Simulated, percent: float) -> float:
    """A percentile of the gaps between tokens of one request, over the whole run."""
    return from_gaps(run.gap_counts, run.gap_sum_s, run.gap_squares_s2, (percent,)).percentile_s(percent)


def queued_s(run: Simulated, percent: float = 50.0) -> float:
    """A percentile of the wait from arrival to the first step; infinite where it falls on a refused request."""
    wait_s = np.nan_to_num(run.admitted_s - run.arrive_s, nan=np.inf)
    return float(np.percentile(wait_s, percent, method="higher"))


def first_token_s(run: Simulated, percent: float) -> float:
    """A percentile of the time to the first token."""
    return float(np.percentile(latencies(run).ttft_s, percent))


def whole_s(run: Simulated, percent: float) -> float:
    """A percentile of the time from arrival to the last token."""
    return float(np.percentile(latencies(run).e2el_s, percent))
