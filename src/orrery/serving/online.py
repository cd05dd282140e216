"""Traffic without an end: a fixed number of requests in flight, or arrivals at a rate.

A time to the first token is the front end, the rest of a step, the prompts ahead and one's own (``steady``).

open loop     Poisson: the concurrency at which as many requests leave as arrive.
closed loop   a share concurrency / num_requests of all starts at once. Each of these waits for the prompts before its
              own and decodes beside those behind it, so half of them either way. Later rounds come as earlier ones
              end, closer together than evenly until the spread of lengths has pulled them apart (``mix.waves_of``).
"""

from dataclasses import dataclass
from itertools import accumulate
from math import ceil, exp, hypot, log, sqrt

import numpy as np

from orrery.execution.batch import Floats
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory
from orrery.serving.mix import SPREAD_FRAC
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
    highest_requests_per_s: float = 0.0  # of an open loop: what can leave


def sweep(
    deployment: Deployment,
    memory: Memory,
    input_tokens: float,
    output_tokens: float,
    concurrencies: Floats,
    num_requests: float = 0.0,
    output_tokens_std: float = 0.0,
) -> Points:
    """Closed loops at each of ``concurrencies`` (whole deployment); without ``num_requests``, 10 rounds."""
    replicas, engine = deployment.layout.dp, deployment.engine
    each = np.maximum(concurrencies / replicas, 1.0)
    requests = np.where(num_requests > 0, num_requests / replicas, REQUESTS_PER_SLOT * each)
    state = steady(
        deployment,
        memory,
        input_tokens,
        output_tokens,
        each,
        requests / each,
        _spread_frac(output_tokens, output_tokens_std),
    )
    first = np.minimum(1.0, each / requests)
    ttft_s, tpot_s = _first_round(state, max(output_tokens - 1.0, 0.0), engine.has_mixed_steps)
    ttft_s += engine.entry_s(input_tokens)
    steps = max(output_tokens - 1.0, 0.0)
    late_s = state.away_s + state.queue_s + state.behind_s + state.prefill_s
    ttft_s, tpot_s = first * ttft_s + (1 - first) * late_s, first * tpot_s + (1 - first) * state.tpot_s
    rate = concurrencies / (ttft_s + steps * tpot_s)
    return Points(
        concurrency=concurrencies,
        ttft_s=ttft_s,
        tpot_s=tpot_s,
        requests_per_s=rate,
        output_tokens_per_s=rate * output_tokens,
        state=state,
    )


def _spread_frac(mean: float, std: float) -> float:
    """Half the width of whole lengths around their mean, as a part of it."""
    return min(hypot(sqrt(3.0) * std / mean if std else SPREAD_FRAC, 0.5 / max(mean, 1.0)), 1.0)


def _first_round(state: Steady, steps: float, has_mixed_steps: bool) -> tuple[Floats, Floats]:
    """Means over the requests that start at once, of which each sees only the prompts behind its own.

    Their prompts fill n steps. Those that find no slot wait until one ends, and then the next.
    """
    full = state.slots / state.full_prompts
    last = np.maximum(full, 1.0)
    waiting = np.maximum(state.concurrency - state.slots, 0.0)
    queue_s = waiting * waiting / (2 * state.concurrency * state.requests_per_s)
    ttft_s = (last + 1) / 2 * state.full_s + queue_s
    if not steps:
        return ttft_s, state.tpot_s
    behind = np.maximum(full - 1, 0.0) / 2  # full steps after one's own, on average
    if has_mixed_steps:
        behind = np.where(behind * 2 <= steps, behind, steps - steps * steps / np.maximum(4 * behind, 1e-9))
        return ttft_s, state.decode_s + behind / steps * (state.full_s - state.decode_s)
    return ttft_s, state.decode_s + behind / steps * state.full_s


def open_loop(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, concurrencies: Floats
) -> Points:
    """Poisson arrivals that keep each of ``concurrencies`` in flight on average."""
    state = steady(
        deployment, memory, input_tokens, output_tokens, np.maximum(concurrencies / deployment.layout.dp, 1.0)
    )
    rate = deployment.layout.dp * state.requests_per_s
    return Points(
        concurrency=concurrencies,
        ttft_s=state.away_s + state.queue_s + state.behind_s + state.prefill_s,
        tpot_s=state.tpot_s,
        requests_per_s=rate,
        output_tokens_per_s=rate * output_tokens,
        state=state,
    )


def highest_rate(deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float) -> float:
    """Requests a second that leave a deployment whose batches are full."""
    limit = batch_limit(deployment, memory, input_tokens, output_tokens) * deployment.layout.dp
    ladder = np.geomspace(1.0, max(limit, 1.0), LADDER)
    return float(open_loop(deployment, memory, input_tokens, output_tokens, ladder).requests_per_s.max())


def at_rate(
    deployment: Deployment,
    memory: Memory,
    input_tokens: float,
    output_tokens: float,
    rate_per_s: float,
    num_requests: float = 0.0,
) -> Points | Infeasible:
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
                need=rate_per_s,
                have=highest,
                unit="requests/s",
                smallest_change=f"Run {ceil(rate_per_s / highest * 1.0001)} replicas of it, or lower the rate.",
            )
        top = open_loop(deployment, memory, input_tokens, output_tokens, np.array([limit]))
        backlog_s = num_requests / 2 * (1 / highest - 1 / rate_per_s)
        return Points(
            concurrency=top.concurrency,
            ttft_s=top.ttft_s + backlog_s,
            tpot_s=top.tpot_s,
            highest_requests_per_s=highest,
            requests_per_s=top.requests_per_s,
            output_tokens_per_s=top.output_tokens_per_s,
            state=top.state,
        )
    rates: list[float] = curve.requests_per_s.tolist()
    rising: Floats = np.array(list(accumulate(rates, max)))
    if rate_per_s < rates[0]:
        concurrency = rate_per_s * float(curve.ttft_s[0] + max(output_tokens - 1.0, 0.0) * curve.tpot_s[0])
    else:
        concurrency = exp(float(np.interp(log(rate_per_s), np.log(rising), np.log(ladder))))
    found = open_loop(deployment, memory, input_tokens, output_tokens, np.array([concurrency]))
    life_s = found.ttft_s + max(output_tokens - 1.0, 0.0) * found.tpot_s
    return Points(
        concurrency=rate_per_s * life_s,
        ttft_s=found.ttft_s,
        tpot_s=found.tpot_s,
        highest_requests_per_s=highest,
        requests_per_s=np.array([rate_per_s]),
        output_tokens_per_s=np.array([rate_per_s * output_tokens]),
        state=found.state,
    )
