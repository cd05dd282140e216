"""A replica in steady state: ``concurrency`` requests in flight, each prefilled once and decoded to its end.

In one request's life the other slots prefill once each, so of its ``output - 1`` decode steps
m = (slots - 1) x input / chunk carry a chunk of somebody's prompt. The time per output token is the mean step::

    tpot = ((output - 1 - m) x t_decode + m x t_mixed) / (output - 1)

When m exceeds output - 1, prefill is the bottleneck: every step is mixed, fewer slots decode, and the rest wait.
Requests beyond the batch or cache limit wait for a slot; Little's law gives how long.
"""

from dataclasses import dataclass
from math import ceil, log

import numpy as np

from orrery.execution.batch import Floats
from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory
from orrery.execution.shard import has_exchange
from orrery.serving.clock import Ticks, steps_of, tick

ROUNDS, WEIGHT, SETTLED = 20, 0.7, 2e-3
"""Fixed-point rounds for the slots that decode, how far each goes, and the share of the slots whose move ends it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steady:
    """The equilibrium at each concurrency (of one replica); arrays of one shape."""

    concurrency: Floats
    slots: Floats  # in the batch; the rest of the concurrency waits
    decoding: Floats  # slots that decode, on average
    tpot_s: Floats
    prefill_s: Floats  # a prompt's own steps, first to last
    queue_s: Floats  # waiting for a slot, for a step to end, and behind other prompts
    requests_per_s: Floats
    decode_s: Floats  # a step without prompts
    full_decode_s: Floats  # the same with every slot decoding
    mixed_s: Floats  # a step with a chunk of a prompt
    mixed_share: Floats  # of steps that carry prompt tokens
    chunk_tokens: Floats
    ticks: Ticks  # first half: decode steps, second half: mixed steps, in order of concurrency


def batch_limit(deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float) -> float:
    """Sequences that can be in a replica's batch: the engine's limit, or what the cache holds.

    An engine that never evicts reserves the whole answer; one that does holds half of it on average.
    """
    held = output_tokens if deployment.engine.reserves_output else output_tokens / 2
    return max(1.0, min(float(memory.max_num_seqs), memory.sequences(input_tokens + held)))


def steady(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, concurrency: Floats
) -> Steady:
    """The equilibrium of one replica at each of ``concurrency``."""
    pp = deployment.layout.pp
    slots = np.minimum(concurrency, batch_limit(deployment, memory, input_tokens, output_tokens))
    steps, prompt = max(output_tokens - 1.0, 0.0), max(input_tokens, 1.0)
    nodes = _nodes(slots, pp)
    chunks = _chunks(nodes, prompt, steps / pp, float(memory.max_num_batched_tokens))
    ticks = _tick_nodes(deployment, nodes, chunks, prompt, input_tokens + output_tokens / 2)
    size, shared_s = nodes.size, _shared_extra_s(deployment, ticks)
    table = np.stack([ticks.time_s[:size], ticks.time_s[size:], chunks, shared_s])
    ranks = deployment.layout.dp if has_exchange(deployment) else 1

    def pace(decoding: Floats) -> tuple[Floats, ...]:
        """Steps, mean step, prefill and rate when so many slots decode."""
        decode_s, mixed_s, chunk, extra_s = _between(nodes, table, decoding / pp)
        loaded = np.maximum(slots - 1.0, 0.0) * prompt / chunk  # mixed steps in one request's decoding life
        share = np.minimum(1.0, loaded / steps) if steps else np.ones_like(slots)
        mean_s = _mean_step_s(share, decode_s, mixed_s, extra_s, ranks)
        own_s = np.maximum(1.0, prompt / chunk) * mixed_s
        rate = np.minimum(slots / (own_s + steps * mean_s), chunk / prompt / mixed_s * pp)
        return decode_s, mixed_s, chunk, share, mean_s, own_s, rate

    decoding = slots.copy()
    for _ in range(ROUNDS if steps else 0):
        *_, mean_s, _, rate = pace(decoding)
        moved = WEIGHT * (np.minimum(rate * steps * mean_s, slots) - decoding)
        decoding = decoding + moved
        if (np.abs(moved) <= SETTLED * slots).all():
            break
    decode_s, mixed_s, chunk, share, mean_s, own_s, rate = pace(decoding)
    queue_s = np.maximum(concurrency / rate - own_s - steps * mean_s, 0.0)
    return Steady(
        concurrency=concurrency, slots=slots, decoding=decoding, tpot_s=mean_s, prefill_s=own_s, queue_s=queue_s,
        requests_per_s=rate, decode_s=decode_s, mixed_s=mixed_s, mixed_share=share, chunk_tokens=chunk, ticks=ticks,
        full_decode_s=_between(nodes, table, slots / pp)[0],
    )  # fmt: skip


def _between(nodes: Floats, table: Floats, sizes: Floats) -> Floats:
    """Every row of ``table`` (rows x nodes) between the nodes, at ``sizes``; constant beyond the ends."""
    if nodes.size == 1:
        return np.repeat(table, sizes.size, axis=1)
    i = np.minimum(np.maximum(nodes.searchsorted(sizes) - 1, 0), nodes.size - 2)
    share = np.minimum(np.maximum((sizes - nodes[i]) / (nodes[i + 1] - nodes[i]), 0.0), 1.0)
    return table[:, i] + (table[:, i + 1] - table[:, i]) * share


def _shared_extra_s(deployment: Deployment, ticks: Ticks) -> Floats:
    """What a mixed step adds in the experts and on the way to them, which attention ranks do together."""
    size = ticks.time_s.size // 2
    if not has_exchange(deployment):
        return np.zeros(size)
    together = [p.time_s for p in ticks.done.parts if p.name in ("experts", "dispatch", "combine")]
    shared_s: Floats = np.sum(together, axis=0)
    return shared_s[size:] - shared_s[:size]


def _mean_step_s(share: Floats, decode_s: Floats, mixed_s: Floats, shared_s: Floats, dp: int) -> Floats:
    """The mean step of one rank. Ranks that share experts step together, so each waits for every other's prompts.

    A rank's own part of a mixed step (attention, linear layers) is waited for whenever any of ``dp`` ranks has one:
    1 - (1 - share)^dp of all steps. The experts' part grows with all tokens and is the same however they are dealt.
    """
    if dp == 1:
        return (1 - share) * decode_s + share * mixed_s
    own_s = mixed_s - decode_s - shared_s
    anyone = 1.0 - (1.0 - share) ** dp
    return decode_s + share * shared_s + anyone * own_s


def _nodes(slots: Floats, pp: int) -> Floats:
    """Batch sizes at which steps are costed: the asked ones, and a ladder below for slots busy with prompts."""
    top = max(1.0, float(slots.max()) / pp)
    ladder = np.exp(np.linspace(0.0, log(top), max(2, min(4, ceil(top)))))
    return np.unique(np.round(np.concatenate([slots / pp, ladder]).clip(1.0)))


def _chunks(nodes: Floats, prompt: float, steps: float, budget: float) -> Floats:
    """Prompt tokens in a mixed step: one prompt, or as many as finish decoding in a step, within the token budget."""
    arriving = nodes * prompt / steps if steps else nodes * prompt
    return np.minimum(np.maximum(prompt, arriving), np.maximum(budget - nodes, budget / 8))


def _tick_nodes(deployment: Deployment, nodes: Floats, chunks: Floats, prompt: float, context: float) -> Ticks:
    """Decode steps, then mixed steps, at every node. A chunk's attention sees half of the prompt on average."""
    zero = np.zeros_like(nodes)
    prompts = np.maximum(1.0, np.rint(chunks / prompt))
    tokens = chunks / prompts
    both = steps_of(
        np.concatenate([zero, prompts]), np.concatenate([zero, tokens]), np.concatenate([zero, (prompt + tokens) / 2]),
        np.concatenate([nodes, nodes if deployment.engine.has_mixed_steps else zero]),
        np.concatenate([zero, zero]) + context,
    )  # fmt: skip
    ticks = tick(deployment, both)
    if deployment.engine.has_mixed_steps:
        return ticks
    size = nodes.size  # prompts run alone: a "mixed" step is a prompt step, then a decode step
    return Ticks(
        done=ticks.done, host_s=ticks.host_s,
        time_s=np.concatenate([ticks.time_s[:size], ticks.time_s[:size] + ticks.time_s[size:]]),
        stage_s=np.concatenate([ticks.stage_s[:size], ticks.stage_s[:size] + ticks.stage_s[size:]]),
    )  # fmt: skip
