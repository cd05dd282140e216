"""Traffic without an end: a fixed number of requests in flight, or arrivals at a rate.

Time to the first token = front end + own prefill + waiting. Waiting has three causes: no free slot (Little's law, in
``steady``); the step under way when the request arrives (half of one); and other prompts ahead in the queue, which at
a share r of mixed steps is the M/D/1 wait r / (2 (1 - r)) of one prefill. A closed loop also starts with all requests
at once: those of the first round, a share concurrency / num_requests, wait for half of the others' prompts.
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.execution.batch import Floats
from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory
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


def sweep(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, concurrencies: Floats,
    num_requests: float = 0.0,
) -> Points:  # fmt: skip
    """Closed loops at each of ``concurrencies`` (whole deployment); ``num_requests`` < 0 leaves out the first round."""
    replicas = deployment.layout.dp
    state = steady(deployment, memory, input_tokens, output_tokens, np.maximum(concurrencies / replicas, 1.0))
    requests = np.where(num_requests > 0, num_requests / replicas, REQUESTS_PER_SLOT * state.concurrency)
    first = np.minimum(1.0, state.concurrency / requests) if num_requests >= 0 else np.zeros_like(state.concurrency)
    per_chunk = np.maximum(1.0, state.chunk_tokens / max(input_tokens, 1.0))
    burst_s = np.maximum(state.slots - per_chunk, 0.0) / 2 * state.prefill_s / per_chunk
    ttft_s = deployment.engine.request_s + state.prefill_s + state.queue_s
    ttft_s = ttft_s + (1 - first) * arrival_wait_s(state) + first * burst_s
    rate = replicas * state.requests_per_s
    return Points(
        concurrency=concurrencies, ttft_s=ttft_s, tpot_s=state.tpot_s, requests_per_s=rate,
        output_tokens_per_s=rate * output_tokens, state=state,
    )  # fmt: skip


def arrival_wait_s(state: Steady) -> Floats:
    """Rest of the step under way, and prompts ahead: r / (2 (1 - r)) prefills, never more than all other slots'."""
    share = np.minimum(state.mixed_share, 1.0 - 1.0 / (1.0 + state.slots))
    mean_s = (1 - share) * state.decode_s + share * state.mixed_s
    ahead = np.minimum(share / (2 * (1 - share)), np.maximum(state.slots - 1, 0.0) / 2)
    return np.where(state.slots > 1, mean_s / 2 + ahead * state.prefill_s, 0.0)


def at_rate(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, rate_per_s: float,
    num_requests: float = 0.0,
) -> Points:  # fmt: skip
    """Poisson arrivals: the concurrency at which as many requests leave as arrive.

    Beyond the highest rate that the deployment sustains, a run of ``num_requests`` ends with a backlog, and its first
    tokens wait for half of it on average; without a number of requests there is no answer (OutOfRange).
    """
    limit = batch_limit(deployment, memory, input_tokens, output_tokens) * deployment.layout.dp
    ladder = np.geomspace(1.0, max(limit, 1.0), LADDER)
    curve = sweep(deployment, memory, input_tokens, output_tokens, ladder, -1.0)
    highest = float(curve.requests_per_s.max())
    if rate_per_s >= highest:
        if not num_requests:
            raise OutOfRange(
                f"{rate_per_s:g} requests/s is more than the {highest:.3g} that this deployment sustains; the queue "
                "would grow without end. Ask for a lower rate, or more devices."
            )
        top = sweep(deployment, memory, input_tokens, output_tokens, np.array([limit]), -1.0)
        backlog_s = num_requests / 2 * (1 / highest - 1 / rate_per_s)
        return Points(
            concurrency=top.concurrency, ttft_s=top.ttft_s + backlog_s, tpot_s=top.tpot_s,
            requests_per_s=top.requests_per_s, output_tokens_per_s=top.output_tokens_per_s, state=top.state,
        )  # fmt: skip
    rising = np.maximum.accumulate(curve.requests_per_s)
    concurrency = rate_per_s * (output_tokens * curve.tpot_s[0]) if rate_per_s < rising[0] else 0.0
    if not concurrency:
        concurrency = float(np.exp(np.interp(np.log(rate_per_s), np.log(rising), np.log(ladder))))
    found = sweep(deployment, memory, input_tokens, output_tokens, np.array([concurrency]), -1.0)
    return Points(
        concurrency=found.concurrency, ttft_s=found.ttft_s, tpot_s=found.tpot_s,
        requests_per_s=np.array([rate_per_s]), output_tokens_per_s=np.array([rate_per_s * output_tokens]),
        state=found.state,
    )  # fmt: skip
