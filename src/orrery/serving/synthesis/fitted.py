"""A trace in nine numbers, from which traffic like it is made: as much as wanted, at any rate.

Arrivals: gamma gaps with the trace's mean and coefficient of variation. Lengths: a lognormal each, fitted to the
mean, median, 90th and 99th percentile. What goes with what: a Gaussian copula with the trace's rank correlation,
rho = 2 sin(pi r/6) for Spearman's r [kruskal-1958].
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.serving.arrivals import arrivals
from orrery.serving.requests import Requests
from orrery.serving.synthesis.clipped import lognormal_centre
from orrery.serving.synthesis.lengths import Floats, Ints, fit_lognormal, whole

MIN_SIGMA = 0.01
MARKS = (0.5, 0.9, 0.99)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """Parameters fitted to a trace; ``requests`` makes more like it."""

    request_rate_per_s: float  # 0: the trace had no arrivals
    interarrival_cv_ratio: float  # spread of the gaps over their mean
    input_log_mean_ratio: float  # mu and sigma of the logarithm of the tokens
    input_log_std_ratio: float
    input_most_tokens: int
    output_log_mean_ratio: float
    output_log_std_ratio: float
    output_most_tokens: int
    correlation_ratio: float  # of the normals under the two lengths

    def requests(self, count: int, rate_per_s: float = 0.0, seed: int = 0) -> Requests:
        """``count`` requests like the trace's, at its own rate or another."""
        rate = rate_per_s or self.request_rate_per_s
        if not rate > 0:
            raise ScenarioError("traffic: the trace has no arrival times; write a rate in requests/s.")
        first = stream(seed, "lengths/input").standard_normal(count)
        own = stream(seed, "lengths/output").standard_normal(count)
        second = self.correlation_ratio * first + math.sqrt(1.0 - self.correlation_ratio**2) * own
        shape = 1.0 / self.interarrival_cv_ratio**2 if self.interarrival_cv_ratio > 0 else math.inf
        return Requests(
            arrive_s=arrivals("gamma", count, rate, seed, burstiness=max(shape, 1e-6)),
            input_tokens=whole(
                np.exp(self.input_log_mean_ratio + self.input_log_std_ratio * first), self.input_most_tokens
            ),
            output_tokens=whole(
                np.exp(self.output_log_mean_ratio + self.output_log_std_ratio * second), self.output_most_tokens
            ),
        )


def fit(arrive_s: Floats, input_tokens: Ints, output_tokens: Ints) -> Fitted:
    """The numbers of a trace, its requests in order of arrival."""
    if input_tokens.size < 2:
        raise ScenarioError(f"traffic: got {input_tokens.size} requests to fit; write at least 2, better 100 or more.")
    gaps = np.diff(arrive_s)
    mean_gap = float(gaps.mean())
    inputs, outputs = _lognormal(input_tokens), _lognormal(output_tokens)
    return Fitted(
        request_rate_per_s=1.0 / mean_gap if mean_gap > 0 else 0.0,
        interarrival_cv_ratio=float(gaps.std()) / mean_gap if mean_gap > 0 else 0.0,
        input_log_mean_ratio=inputs[0],
        input_log_std_ratio=inputs[1],
        input_most_tokens=int(input_tokens.max()),
        output_log_mean_ratio=outputs[0],
        output_log_std_ratio=outputs[1],
        output_most_tokens=int(output_tokens.max()),
        correlation_ratio=2.0 * math.sin(math.pi * rank_correlation(input_tokens, output_tokens) / 6.0),
    )


def _lognormal(tokens: Ints) -> tuple[float, float]:
    """(mu, sigma), mu such that the mean is the trace's even after clipping at 1 and at the longest."""
    mean, most = float(tokens.mean()), float(tokens.max())
    if tokens.min() == tokens.max():
        return math.log(mean), 0.0
    _, sigma = fit_lognormal({p: float(np.quantile(tokens, p)) for p in MARKS}, mean)
    sigma = max(sigma, MIN_SIGMA)
    return lognormal_centre(mean, sigma, most), sigma


def rank_correlation(one: Ints, other: Ints) -> float:
    """Spearman's: the correlation of the ranks, equal values sharing the mean of theirs; 0 if either never varies."""
    first, second = _ranks(one), _ranks(other)
    spread = float(first.std() * second.std())
    return float(((first - first.mean()) * (second - second.mean())).mean()) / spread if spread > 0 else 0.0


def _ranks(values: Ints) -> NDArray[np.float64]:
    _, place, times = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(times) - (times - 1) / 2.0)[place]
