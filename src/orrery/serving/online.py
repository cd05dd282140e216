"""Traffic without an end: a fixed number of requests in flight, or arrivals at a rate.

Time to the first token = front end + own prefill + waiting for a slot (Little's law, in ``steady``) + waiting behind
other prompts. How many prompts are ahead depends on how requests arrive:

open loop     Poisson: with a share r of mixed steps, the M/D/1 wait r / (2 (1 - r)) of one prefill, and half a step.
closed loop   the first round, a share concurrency / num_requests of all, waits for half of the others' prompts; later
              rounds arrive as the earlier ones finish, a few together (the engine's ``prompts_ahead``).
in waves      where prompts run alone, decodes wait for all of them, so requests of equal length finish together and
              come back together: every round waits like the first, and prefill only delays a request's second token.
"""

from dataclasses import dataclass
from itertools import accumulate
from math import ceil, exp, log

import numpy as np

from orrery.execution.batch import Floats
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory
from orrery.serving.steady import Steady, batch_limit, steady
from orrery.serving.workload import REQUESTS_PER_SLOT

LADDER = 24
"""Concurrencies at which the rate curve is costed before it is inverted."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Operating points of a whole deployment; arrays of one shape. Rates are of all replicas together."""

    concurrency: Floats
    ttft_s: Floats
    tpot_s: Floats
    requests_per_s: Floats
    output_tokens_per_s: Floats
    state: Steady
    load_frac: float = 0.0  # of arrivals: their rate over the highest that is served in time


def sweep(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, concurrencies: Floats,
    num_requests: float = 0.0, output_tokens_std: float = 0.0,
) -> Points:  # fmt: skip
    """Closed loops at each of ``concurrencies`` (whole deployment); without ``num_requests``, 10 rounds."""
    replicas, engine = deployment.layout.dp, deployment.engine
    state = steady(deployment, memory, input_tokens, output_tokens, np.maximum(concurrencies / replicas, 1.0))
    requests = np.where(num_requests > 0, num_requests / replicas, REQUESTS_PER_SLOT * state.concurrency)
    first = np.minimum(1.0, state.concurrency / requests)
    others = np.maximum(state.slots - 1.0, 0.0) / 2
    each_s = _prefill_each_s(state, input_tokens)
    behind_s = (first * others + (1 - first) * np.minimum(engine.prompts_ahead, others)) * each_s
    ttft_s, tpot_s = state.prefill_s + behind_s, state.tpot_s
    if not engine.has_mixed_steps and output_tokens > 1:
        together = _together(state, each_s, output_tokens_std)
        delay_s = others * each_s / (output_tokens - 1.0)
        tpot_s = together * (state.full_decode_s + delay_s) + (1 - together) * tpot_s
        ttft_s = together * (others + 1) * each_s + (1 - together) * ttft_s
    return _points(deployment, state, concurrencies, ttft_s, tpot_s, output_tokens)


def _points(
    deployment: Deployment, state: Steady, concurrencies: Floats, ttft_s: Floats, tpot_s: Floats, output_tokens: float
) -> Points:
    rate = deployment.layout.dp * state.requests_per_s
    return Points(
        concurrency=concurrencies, ttft_s=deployment.engine.request_s + state.queue_s + ttft_s, tpot_s=tpot_s,
        requests_per_s=rate, output_tokens_per_s=rate * output_tokens, state=state,
    )  # fmt: skip


def _prefill_each_s(state: Steady, input_tokens: float) -> Floats:
    """What one more prompt adds to a queue of prompts: a mixed step's time beyond a decode step's, per prompt."""
    return (state.mixed_s - state.full_decode_s).clip(0.0) * max(input_tokens, 1.0) / state.chunk_tokens


def _together(state: Steady, each_s: Floats, output_tokens_std: float) -> Floats:
    """How much of a wave stays a wave: its prompts' time against how far apart unequal answers end."""
    wave_s = state.slots * each_s
    return wave_s / np.maximum(wave_s + 2 * output_tokens_std * state.full_decode_s, 1e-12)


def open_loop(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, concurrencies: Floats
) -> Points:
    """Poisson arrivals that keep each of ``concurrencies`` in flight on average."""
    state = steady(
        deployment, memory, input_tokens, output_tokens, np.maximum(concurrencies / deployment.layout.dp, 1.0)
    )
    share = np.minimum(state.mixed_share, 1.0 - 1.0 / (1.0 + state.slots))
    step_s = (1 - share) * state.decode_s + share * state.mixed_s
    ahead = np.minimum(share / (2 * (1 - share)), np.maximum(state.slots - 1, 0.0) / 2)
    wait_s = np.where(state.slots > 1, step_s / 2 + ahead * _prefill_each_s(state, input_tokens), 0.0)
    return _points(deployment, state, concurrencies, state.prefill_s + wait_s, state.tpot_s, output_tokens)


def at_rate(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, rate_per_s: float,
    num_requests: float = 0.0,
) -> Points | Infeasible:  # fmt: skip
    """Poisson arrivals: the concurrency at which as many requests leave as arrive.

    Beyond the highest rate that the deployment sustains, a run of ``num_requests`` ends with a backlog, and its first
    tokens wait for half of it on average; without an end the queue grows for ever, which is Infeasible.
    """
    limit = batch_limit(deployment, memory, input_tokens, output_tokens) * deployment.layout.dp
    ladder = np.geomspace(1.0, max(limit, 1.0), LADDER)
    curve = open_loop(deployment, memory, input_tokens, output_tokens, ladder)
    highest = float(curve.requests_per_s.max())
    if rate_per_s >= highest:
        if not num_requests:
            return Infeasible(
                what=f"Arrivals at {deployment.model.name} on {deployment.cluster.device.name} ({deployment.layout})",
                need=rate_per_s, have=highest, unit="requests/s",
                smallest_change=f"Run {ceil(rate_per_s / highest * 1.0001)} replicas of it, or lower the rate.",
            )  # fmt: skip
        top = open_loop(deployment, memory, input_tokens, output_tokens, np.array([limit]))
        backlog_s = num_requests / 2 * (1 / highest - 1 / rate_per_s)
        return Points(
            concurrency=top.concurrency, ttft_s=top.ttft_s + backlog_s, tpot_s=top.tpot_s,
            requests_per_s=top.requests_per_s, output_tokens_per_s=top.output_tokens_per_s, state=top.state,
            load_frac=rate_per_s / highest,
        )  # fmt: skip
    rates: list[float] = curve.requests_per_s.tolist()
    rising: Floats = np.array(list(accumulate(rates, max)))
    if rate_per_s < rates[0]:
        concurrency = rate_per_s * output_tokens * curve.tpot_s.tolist()[0]
    else:
        concurrency = exp(float(np.interp(log(rate_per_s), np.log(rising), np.log(ladder))))
    found = open_loop(deployment, memory, input_tokens, output_tokens, np.array([concurrency]))
    return Points(
        concurrency=found.concurrency, ttft_s=found.ttft_s, tpot_s=found.tpot_s,
        requests_per_s=np.array([rate_per_s]), output_tokens_per_s=np.array([rate_per_s * output_tokens]),
        state=found.state, load_frac=rate_per_s / highest,
    )  # fmt: skip
