"""A simulated run in numbers: latencies, throughput, goodput, what filled up, energy, and how sure it all is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from orrery.serving.metrics.distribution import Distribution, distribution, from_gaps
from orrery.serving.metrics.goodput import Goodput, goodput
from orrery.serving.metrics.intervals import Bounds, confidence
from orrery.serving.metrics.latencies import Latencies, latencies
from orrery.serving.metrics.over_time import OverTime, mean, over_time
from orrery.serving.metrics.peaks import max_concurrent_requests, max_output_tokens_per_s
from orrery.serving.metrics.saturation import Saturated, saturated_first
from orrery.serving.simulation.result import Simulated

PERCENTILES = (50.0, 90.0, 95.0, 99.0)
"""Percentiles that are reported unless others are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Breakdown:
    """Where the mean end-to-end latency goes; the three add up to it."""

    queue_s: float  # arrival -> first time in a batch
    prefill_s: float  # -> first token; waits after a preemption before it included
    decode_s: float  # -> last token; likewise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """All there is to say about a run. Latencies leave out the warm-up and refused requests; rates are of it all."""

    num_requests: int
    completed: int
    failed: int
    duration_s: float
    input_tokens: int  # of completed requests, as in vLLM
    output_tokens: int
    requests_per_s: float
    output_tokens_per_s: float
    total_tokens_per_s: float
    max_output_tokens_per_s: float
    max_concurrent_requests: int
    ttft: Distribution
    tpot: Distribution
    ntpot: Distribution
    itl: Distribution  # over all gaps of the run, the warm-up's included
    e2el: Distribution
    breakdown: Breakdown
    goodput: Goodput | None
    confidence_95: Mapping[str, Bounds] | None  # by "mean_ttft_s", "p99_ttft_s", …
    running_mean_requests: float
    waiting_mean_requests: float
    kv_use_mean_frac: float
    kv_use_peak_frac: float
    idle_frac: float
    preemptions: int
    prefix_hit_rate_frac: float
    power_w: float
    energy_j: float
    energy_j_per_output_token: float | None
    saturated: Saturated
    over_time: OverTime


def summary(
    simulated: Simulated,
    objectives: Mapping[str, float],
    percentiles: Sequence[float] = PERCENTILES,
    warmup_frac: float = 0.0,
) -> Summary:
    """``simulated`` in numbers; ``objectives`` are limits in seconds by ``ttft``, ``tpot``, ``e2el``.

    The first ``warmup_frac`` of the requests to arrive count in nothing that is about single requests: latencies, their
    intervals, goodput. Rates, totals, energy and the timeline are of the whole run.
    """
    everyone = latencies(simulated)
    done = latencies(simulated, warmup_frac) if warmup_frac else everyone
    duration_s = simulated.duration_s
    tokens_in, tokens_out = _tokens(simulated, everyone)
    ttft, tpot, e2el, ntpot = (
        distribution(column, percentiles) for column in (done.ttft_s, done.long_tpot_s, done.e2el_s, done.ntpot_s)
    )
    over = over_time(simulated)
    return Summary(
        num_requests=simulated.requests.count,
        completed=everyone.finish_s.size,
        failed=simulated.requests.count - everyone.finish_s.size,
        duration_s=duration_s,
        input_tokens=tokens_in,
        output_tokens=tokens_out,
        requests_per_s=_rate(everyone.finish_s.size, duration_s),
        output_tokens_per_s=_rate(tokens_out, duration_s),
        total_tokens_per_s=_rate(tokens_in + tokens_out, duration_s),
        max_output_tokens_per_s=max_output_tokens_per_s(everyone, duration_s),
        max_concurrent_requests=max_concurrent_requests(everyone, duration_s),
        ttft=ttft,
        tpot=tpot,
        ntpot=ntpot,
        e2el=e2el,
        itl=from_gaps(simulated.gap_counts, simulated.gap_sum_s, simulated.gap_squares_s2, percentiles),
        breakdown=_breakdown(done, ttft, e2el),
        goodput=goodput(done, objectives, _rate(simulated.requests.count, duration_s)),
        confidence_95=confidence(
            {"ttft": done.ttft_s, "tpot": done.long_tpot_s, "e2el": done.e2el_s},
            {"ttft": ttft, "tpot": tpot, "e2el": e2el},
        ),
        running_mean_requests=mean(over.running_requests, over.width_s),
        waiting_mean_requests=mean(over.waiting_requests, over.width_s),
        kv_use_mean_frac=mean(over.kv_use_frac, over.width_s),
        kv_use_peak_frac=_peak(over),
        idle_frac=simulated.idle_frac,
        preemptions=int(simulated.preemptions.sum()),
        prefix_hit_rate_frac=_hit_rate_frac(simulated, everyone),
        energy_j=simulated.energy_j,
        power_w=_rate(simulated.energy_j, duration_s),
        energy_j_per_output_token=simulated.energy_j / tokens_out if tokens_out else None,
        saturated=saturated_first(simulated, over),
        over_time=over,
    )


def _tokens(simulated: Simulated, everyone: Latencies) -> tuple[int, int]:
    """Prompt and output tokens of the requests that finished."""
    prompts = simulated.requests.input_tokens
    if everyone.finish_s.size < prompts.size:
        prompts = prompts[np.isfinite(simulated.finish_s)]
    return int(prompts.sum()), int(everyone.output_tokens.sum())


def _breakdown(done: Latencies, ttft: Distribution, e2el: Distribution) -> Breakdown:
    queue_s = float(done.admitted_s.mean() - done.arrive_s.mean()) if done.arrive_s.size else np.nan
    return Breakdown(queue_s=queue_s, prefill_s=ttft.mean_s - queue_s, decode_s=e2el.mean_s - ttft.mean_s)


def _peak(over: OverTime) -> float:
    return float(over.kv_use_frac.max()) if over.kv_use_frac.size else 0.0


def _hit_rate_frac(simulated: Simulated, everyone: Latencies) -> float:
    """Prompt tokens found in the cache / all prompt tokens, of finished requests."""
    cached, prompts = simulated.cached_tokens, simulated.requests.input_tokens
    if everyone.finish_s.size < prompts.size:
        is_done = np.isfinite(simulated.finish_s)
        cached, prompts = cached[is_done], prompts[is_done]
    requested = int(prompts.sum())
    return float(cached.sum()) / requested if requested else 0.0


def _rate(count: float, duration_s: float) -> float:
    return count / duration_s if duration_s > 0 else 0.0
