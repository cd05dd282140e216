"""Runs with a beginning and an end: one static batch, and all requests at once.

static:  the whole batch is prefilled, then decodes output - 1 steps at growing context; in waves if the cache is small.
offline: full batches in steady state, a smaller last one, and the stagger with which a batch fills and drains.
"""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.polynomial.legendre import leggauss

from orrery.execution.engine import Engine
from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory
from orrery.serving.clock import Ticks, steps_of, tick
from orrery.serving.steady import Steady, batch_limit, steady

_NODES, _WEIGHTS = leggauss(3)
"""Three Gauss points integrate a step time that is up to quintic in the context exactly."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Run:
    """One replica's run of all its requests."""

    batch: float  # sequences that really ran together
    ttft_s: float
    tpot_s: float
    latency_s: float  # start to end of the whole run
    prompt_share: float  # of the time, in steps that carry prompt tokens
    ticks: Ticks


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Offline:
    """One replica's run of requests that all wait at the start."""

    batch: float  # sequences that decode together, on average
    ttft_s: float
    tpot_s: float
    latency_s: float  # start to end of the whole run
    state: Steady


def static_run(deployment: Deployment, memory: Memory, batch: float, input_tokens: float, output_tokens: float) -> Run:
    """``batch`` equal requests from an empty replica to the last token.

    They are handed to the engine and come back together, so no front end is in it, and every request lasts as long as
    the batch: tpot = (latency - ttft) / (output - 1), which holds the steps in which others' prompts were computed.
    """
    room = min(float(memory.max_num_seqs), memory.sequences(input_tokens + output_tokens))
    together = max(1.0, min(batch, float(int(room))))
    full_waves, rest = divmod(batch, together)
    first = _wave(deployment, memory, together, input_tokens, output_tokens)
    last_s = _wave(deployment, memory, rest, input_tokens, output_tokens).latency_s if rest else 0.0
    latency = full_waves * first.latency_s + last_s
    waited = sum(i * first.latency_s * together for i in range(int(full_waves))) + full_waves * first.latency_s * rest
    steps = max(output_tokens - 1.0, 0.0)
    ttft_s = first.ttft_s + waited / batch if steps else latency
    return Run(
        batch=together,
        ttft_s=ttft_s,
        tpot_s=(latency - ttft_s) / steps if steps else first.tpot_s,
        latency_s=latency,
        prompt_share=first.prompt_share,
        ticks=first.ticks,
    )


def _wave(deployment: Deployment, memory: Memory, batch: float, input_tokens: float, output_tokens: float) -> Run:
    """One batch that fits: its prompts in as few steps as the token budget allows, then its decode steps."""
    pp, budget = deployment.layout.pp, float(memory.max_num_batched_tokens)
    steps = max(output_tokens - 1.0, 0.0)
    context = input_tokens + 1 + (_NODES + 1) / 2 * max(steps, 1.0)
    per_step = max(1.0, min(budget // max(input_tokens, 1.0), ceil(batch / pp)))
    tokens = min(input_tokens, budget)
    zero = np.zeros(3)
    prompts = per_step if input_tokens else 0.0
    ticks = tick(
        deployment,
        steps_of(
            np.append(zero, prompts),
            np.append(zero, tokens),
            np.append(zero, (input_tokens + tokens) / 2),
            np.append(zero + max(1.0, batch / pp), 0.0),
            np.append(context, 0.0),
        ),
    )
    tpot_s = float(_WEIGHTS @ ticks.time_s[:3]) / 2
    num_prompt_steps = batch / per_step * max(1.0, input_tokens / budget) if input_tokens else 0.0
    prefill_s = 0.0
    if input_tokens:
        drains = _drains(deployment.engine, num_prompt_steps * per_step * tokens)
        prefill_s = float(drains * ticks.time_s[3] + (max(num_prompt_steps, drains) - drains) * ticks.stage_s[3])
    own_s = prefill_s / max(num_prompt_steps, 1.0)
    latency_s = prefill_s + steps * tpot_s + (0.0 if input_tokens else tpot_s)
    return Run(
        batch=batch,
        ttft_s=(prefill_s + own_s) / 2 if input_tokens else tpot_s,
        tpot_s=tpot_s,
        latency_s=latency_s,
        prompt_share=prefill_s / latency_s,
        ticks=ticks,
    )


def _drains(engine: Engine, tokens: float) -> int:
    """How often a pipeline runs empty while it reads so many tokens of prompts."""
    return max(1, ceil(tokens / engine.pass_tokens)) if engine.pass_tokens else 1


def offline_run(
    deployment: Deployment, memory: Memory, num_requests: float, input_tokens: float, output_tokens: float
) -> Offline:
    """``num_requests`` requests, all waiting at the start, on one replica."""
    limit = batch_limit(deployment, memory, input_tokens, output_tokens)
    batch = min(limit, num_requests)
    full, rest = divmod(num_requests / batch, 1.0)
    sizes = np.array([max(1.0, rest * batch), batch])
    state = steady(deployment, memory, input_tokens, output_tokens, sizes)
    rest_s, cycle_s = (sizes / state.requests_per_s).tolist()
    fill_steps = batch / float(state.full_prompts[-1])
    drain_s = 0.5 * min(fill_steps, max(output_tokens - 1.0, 0.0)) * float(state.decode_s[-1])
    latency = full * cycle_s + (rest_s if rest > 1e-9 else 0.0) + drain_s
    wait = max(0.0, latency - cycle_s) / 2
    return Offline(
        batch=float(state.decoding[-1]),
        ttft_s=wait + float(state.behind_s[-1] + state.prefill_s[-1]),
        tpot_s=float(state.tpot_s[-1]),
        latency_s=latency,
        state=state,
    )
