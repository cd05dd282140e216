"""The times of each finished request: what a client with a stopwatch would write down.

ttft = first token - arrival, e2el = finish - arrival, tpot = (finish - first token) / (n - 1),
ntpot = e2el / n, with n output tokens. A request that was refused has no times.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.serving.requests import Floats, Ints
from orrery.serving.simulation.result import Simulated


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Latencies:
    """Columns over the finished requests that count (warm-up left out), in order of arrival."""

    num_sent: int  # finished or not; refused ones and the turns that hung on them included
    arrive_s: Floats
    admitted_s: Floats
    first_token_s: Floats
    finish_s: Floats
    output_tokens: Ints
    ttft_s: Floats
    e2el_s: Floats
    tpot_s: Floats  # 0 for an answer of one token, as in vLLM's goodput

    @property
    def ntpot_s(self) -> Floats:
        """Whole latency over all output tokens."""
        return self.e2el_s / np.maximum(self.output_tokens, 1)

    @property
    def long_tpot_s(self) -> Floats:
        """Time per output token of the answers that have more than one token; the others have none."""
        long = self.output_tokens > 1
        return self.tpot_s if bool(long.all()) else self.tpot_s[long]


def latencies(simulated: Simulated, warmup_frac: float = 0.0) -> Latencies:
    """The times of ``simulated``, without the first ``warmup_frac`` of the requests to arrive."""
    counted = _counted(simulated, warmup_frac)
    arrive_s, finish_s = simulated.arrive_s[counted], simulated.finish_s[counted]
    first_s, admitted_s = simulated.first_token_s[counted], simulated.admitted_s[counted]
    tokens = simulated.requests.output_tokens[counted]
    num_sent, is_done = finish_s.size, np.isfinite(finish_s)
    if not is_done.all():
        arrive_s, finish_s, tokens = arrive_s[is_done], finish_s[is_done], tokens[is_done]
        first_s, admitted_s = first_s[is_done], admitted_s[is_done]
    tpot_s = finish_s - first_s
    tpot_s /= np.maximum(tokens - 1, 1)
    return Latencies(
        num_sent=num_sent,
        arrive_s=arrive_s,
        admitted_s=admitted_s,
        first_token_s=first_s,
        finish_s=finish_s,
        output_tokens=tokens,
        ttft_s=first_s - arrive_s,
        e2el_s=finish_s - arrive_s,
        tpot_s=tpot_s,
    )


def _counted(simulated: Simulated, warmup_frac: float) -> slice | NDArray[np.int64]:
    """Which requests count, in order of arrival; those that never arrived stand last."""
    if not 0.0 <= warmup_frac < 1.0:
        raise ValueError(f"warmup_frac is {warmup_frac:g}; write a share of the requests from 0 up to 1, such as 0.1")
    arrive_s = simulated.arrive_s
    skipped = int(warmup_frac * arrive_s.size)
    if bool((arrive_s[1:] >= arrive_s[:-1]).all()):
        return slice(skipped, None)
    return np.argsort(arrive_s, kind="stable")[skipped:]
