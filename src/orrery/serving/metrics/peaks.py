"""The busiest second: most output tokens in it, most requests in flight during it.

``vllm bench serve`` puts the time of every token into buckets of one second. A simulated run keeps each request's
first token and finish, so the tokens between are spread evenly: n - 1 of them over (first token, finish].
"""

import numpy as np

from orrery.serving.metrics.latencies import Latencies
from orrery.serving.requests import Floats, Ints

MAX_BUCKETS = 10_000_000
"""Runs of more than about 116 days have longer buckets; the rate is still per second."""


def max_output_tokens_per_s(done: Latencies, duration_s: float) -> float:
    """Output tokens in the best second of the run, a second."""
    if not done.finish_s.size:
        return 0.0
    width_s = _width_s(duration_s)
    first, last = done.first_token_s / width_s, done.finish_s / width_s
    start, end = first.astype(np.int64), last.astype(np.int64)
    size = int(end.max()) + 2
    later = np.maximum(done.output_tokens - 1, 0).astype(np.float64)
    tokens = np.bincount(start, minlength=size) + _spread(first, last, start, end, later, size)
    return float(tokens.max()) / width_s


def _spread(first: Floats, last: Floats, start: Ints, end: Ints, tokens: Floats, size: int) -> Floats:
    """``tokens`` even over (first, last): a part in the first bucket, a part in the last, whole ones between."""
    crosses = end > start
    rate = np.divide(tokens, last - first, out=np.zeros_like(tokens), where=crosses)
    steps = np.bincount(start + 1, weights=rate, minlength=size) - np.bincount(end, weights=rate, minlength=size)
    spread: Floats = np.cumsum(steps).astype(np.float64)
    spread += np.bincount(start, weights=np.where(crosses, rate * (start + 1 - first), tokens), minlength=size)
    spread += np.bincount(end, weights=rate * (last - end), minlength=size)
    return spread


def max_concurrent_requests(done: Latencies, duration_s: float) -> int:
    """Most requests that were in flight at some time of one and the same second (buckets, as in vLLM)."""
    if not done.finish_s.size:
        return 0
    width_s = _width_s(duration_s)
    start, end = (done.arrive_s / width_s).astype(np.int64), (done.finish_s / width_s).astype(np.int64)
    size = int(end.max()) + 2
    return int(np.cumsum(np.bincount(start, minlength=size) - np.bincount(end + 1, minlength=size)).max())


def _width_s(duration_s: float) -> float:
    return max(1.0, duration_s / MAX_BUCKETS)
