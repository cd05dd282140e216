"""A replica in steady state: ``concurrency`` requests in flight, each prefilled once and decoded to its end.

The scheduler settles in a mix of steps that knows no seconds (``mix``): so many decodes, so many prompts waiting, and
chunks of prompts. The steps of that mix are costed once, and their durations, weighted by how often they come, are the
times of a request::

    ttft = front end + until a step ends + prompts ahead + the prompt's own steps
    life = steps of a life x mean step   in which a step costs what its decodes and its chunk of prompts cost
    tpot = (life - ttft) / (answer - 1)  what is left of a life for a request's own tokens

Requests beyond the batch or cache limit wait for a slot; Little's law gives how long, and it holds for the whole.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from orrery.execution.batch import Floats
from orrery.execution.host import captured
from orrery.execution.layout import Deployment
from orrery.execution.memory import Memory, recv_interval
from orrery.execution.shard import has_exchange
from orrery.serving.clock import Ticks, steps_of, tick
from orrery.serving.mix import SPREAD_FRAC, Mix, apart, mixed

MAX_LOOKS = 64
"""Points at which the wait for the scheduler's next look is averaged, where its interval has more steps."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steady:
    """The equilibrium at each concurrency (of one replica); arrays of one shape."""

    concurrency: Floats
    slots: Floats  # in the batch; the rest of the concurrency waits
    decoding: Floats  # slots that decode, on average
    tpot_s: Floats
    away_s: Floats  # the front end, and until a step ends
    behind_s: Floats  # behind other prompts
    prefill_s: Floats  # a prompt's own steps, first to last
    queue_s: Floats  # waiting for a slot
    requests_per_s: Floats
    decode_s: Floats  # a step without prompts
    full_s: Floats  # one that is full of prompts
    full_prompts: Floats  # prompts in it
    mixed_share: Floats  # of the time, in steps that carry prompt tokens
    load: Floats  # of the room that steps have for prompts
    ticks: Ticks
    decode_entry: int  # of ``ticks``: a decode step at the highest concurrency
    prompt_entry: int  # and one with prompts


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Costs:
    """Durations of the steps of a mix, and of those that were costed: with a small, a large and a full chunk."""

    decode_s: Floats
    chunk_s: Floats  # (2, …): with the small chunk, and with the large one
    together_s: Floats  # (2, …): what a chunk adds in the experts and on the way to them, which ranks do together
    full_s: Floats
    full_prompts: Floats
    node_tokens: Floats  # (3, …)
    node_s: Floats  # (3, …)
    node_together_s: Floats  # (3, …)


def batch_limit(deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float) -> float:
    """Sequences that can be in a replica's batch: the engine's limit, or what the cache holds.

    An engine that never evicts reserves the whole answer; one that does holds half of it on average. The last block of
    a sequence is half full, and the cache has room left for half of a request that waits because it needs all of it.
    """
    engine = deployment.engine
    held = output_tokens if engine.reserves_output else output_tokens / 2
    fits = memory.sequences(input_tokens + held + engine.block_tokens / 2) - 0.5
    return max(1.0, min(float(memory.max_num_seqs), fits))


def steady(
    deployment: Deployment,
    memory: Memory,
    input_tokens: float,
    output_tokens: float,
    concurrency: Floats,
    rounds: Floats | float = np.inf,
    spread_frac: float = SPREAD_FRAC,
) -> Steady:
    """The equilibrium of one replica at each of ``concurrency``; of a run that starts at once, over its ``rounds``."""
    engine, pp = deployment.engine, deployment.layout.pp
    limit = batch_limit(deployment, memory, input_tokens, output_tokens)
    slots = np.minimum(concurrency, limit)
    each = np.maximum(slots / pp, 1.0)  # of one of the batches in flight of a pipeline
    steps, prompt = max(output_tokens - 1.0, 0.0), max(input_tokens, 1.0)
    again = _preempted(deployment, memory, limit, prompt, steps, concurrency - limit)
    prompt = np.asarray(prompt * (1.0 + again), np.float64)
    interval = looks_every(deployment, steps)
    budget = float(memory.max_num_batched_tokens)
    settle = mixed if engine.has_mixed_steps else partial(apart, interval=interval)
    first = settle(each, prompt, steps, budget, 1.0, spread_frac, rounds)
    ticks = _tick_nodes(deployment, first, each, prompt, input_tokens + output_tokens / 2)
    costs = _costs(deployment, ticks, first, each, prompt)
    step_s, entry_s = _mean_s(deployment, first, costs), engine.entry_s(input_tokens)
    away_s = _away_s(entry_s, engine.has_mixed_steps, step_s, costs, first, each)
    if interval > 1:
        away_s = _unseen_s(entry_s, step_s, costs.decode_s, first, each, interval)
    hidden = np.maximum(concurrency - slots, 0.0) / pp / np.maximum(first.prompts, 1e-12)  # the next one waits already
    away = np.maximum(away_s / step_s - hidden, 0.0)
    own_frac = (steps + first.own_steps) / (steps + first.own_steps + first.wait_steps + away)
    gathered = _gathered(engine.has_mixed_steps, entry_s, costs, each)
    mix = settle(each, prompt, steps, budget, away, spread_frac, rounds, own_frac, gathered)
    costs = _at_chunks(costs, mix)
    mean_s = _mean_s(deployment, mix, costs)
    own_s, behind_s = _own_s(engine.has_mixed_steps, mix, costs, prompt)
    more_s = mean_s - costs.decode_s
    seen_s = own_s + behind_s + away * more_s / mix.dense
    if engine.has_mixed_steps:
        seen_s = seen_s - (mix.own_steps + mix.wait_steps) * costs.decode_s
    tpot_s = costs.decode_s + np.maximum(each / mix.prompts * more_s - seen_s, 0.0) / max(steps, 1.0)
    if not engine.has_mixed_steps:  # those that are gathered come one by one while prompts before theirs are computed
        own_s = own_s - np.minimum(gathered * mix.dense * mix.prompts / each, gathered) * costs.decode_s / 2
    cycle_s = own_s + behind_s + steps * tpot_s
    shown_s = np.where(concurrency > slots, np.minimum(away_s, away * mean_s), away_s)
    rate = slots / (cycle_s + shown_s)
    queue_s = np.maximum(concurrency / rate - cycle_s - away_s, 0.0)
    return Steady(
        concurrency=concurrency,
        slots=slots,
        decoding=mix.decoding * pp,
        tpot_s=tpot_s,
        away_s=away_s,
        behind_s=behind_s,
        prefill_s=own_s,
        queue_s=queue_s,
        requests_per_s=concurrency / (cycle_s + away_s + queue_s),
        decode_s=costs.decode_s,
        full_s=costs.full_s,
        full_prompts=costs.full_prompts * pp,
        load=mix.load,
        ticks=ticks,
        mixed_share=1.0 - (1.0 - mix.shares.sum(axis=0)) * costs.decode_s / mean_s,
        decode_entry=2 * each.size - 1,
        prompt_entry=4 * each.size - 1,
    )


def _preempted(
    deployment: Deployment, memory: Memory, limit: float, prompt: float, steps: float, waiting: Floats
) -> Floats:
    """How often a request is thrown out of a full cache, and its prompt computed again.

    Whoever waits is let in as soon as his prompt fits, so that room is left for anything from none to a whole prompt of
    i tokens. Until the next answer ends and makes room, all others together grow by its o tokens: more than there is in
    o / i of all cases, and the last one that came must go (once, as far as this knows).
    """
    if deployment.engine.reserves_output or limit >= memory.max_num_seqs:
        return np.zeros_like(waiting)
    return min(steps / prompt, 1.0) * np.clip(waiting, 0.0, 1.0)


def looks_every(deployment: Deployment, steps: float) -> float:
    """Decode steps from one look for new requests to the next. A batch whose answers are shorter ends before, and where
    nothing is left to do the scheduler looks at once."""
    return 1.0 if deployment.engine.has_mixed_steps else min(float(recv_interval(deployment)), max(steps, 1.0))


def _away_s(entry_s: float, has_mixed_steps: bool, step_s: Floats, costs: _Costs, mix: Mix, slots: Floats) -> Floats:
    """The front end, and the rest of the step that is under way then.

    After the step in which an answer ended come others: with prompts, of t seconds, a share s of those that come where
    prompts do; the rest are decodes of d seconds. If t is longer than the front end, the first one with prompts before
    it is done holds the request up, and that starts after j decodes with chance s (1 - s)^j; a shorter one is under way
    for its share of the time. Nothing is under way where all other slots are at the front end too. Prompts that run
    alone already hold those that come beside them, so no more of them stand in a request's way than on average.
    """
    decode_s, shares = costs.decode_s, mix.shares.sum(axis=0)
    dense = mix.dense if has_mixed_steps else np.ones_like(mix.dense)
    share: Floats = np.minimum(np.maximum(shares * dense, 1e-9), 1.0 - 1e-9)
    chunk_s: Floats = np.sum(mix.shares * costs.chunk_s, axis=0) / np.maximum(shares, 1e-12)
    decodes, clear = entry_s / decode_s, 1.0 - share
    none = clear**decodes
    before_s = decode_s * (clear / share - decodes * none / (1.0 - none))
    held_s = (1.0 - none) * (before_s + chunk_s) + none * (entry_s + decode_s / 2)
    passed = share * chunk_s / (share * chunk_s + clear * decode_s)
    short_s = entry_s + (passed * chunk_s + (1.0 - passed) * decode_s) / 2
    is_long = chunk_s > entry_s
    rest_s = np.maximum(is_long * held_s + ~is_long * short_s, entry_s)
    idle = _idle_frac(entry_s, step_s, mix, slots)
    return idle * entry_s + (1 - idle) * rest_s


def _idle_frac(entry_s: float, step_s: Floats, mix: Mix, slots: Floats) -> Floats:
    """The chance that all other slots are at the front end."""
    life_s = slots / np.maximum(mix.prompts, 1e-12) * step_s
    return np.minimum(entry_s / life_s, 1.0) ** np.maximum(slots - 1.0, 0.0)


def _unseen_s(entry_s: float, step_s: Floats, decode_s: Floats, mix: Mix, slots: Floats, interval: float) -> Floats:
    """From the end of an answer until the scheduler sees the next request, where it looks every ``interval`` (N) decode
    steps, and after prompts.

    An answer ends with a decode step, j of which are still to come until the next look (0 to N - 1). If the front end
    is quicker than they are, that is j steps. Otherwise the request comes too late: the prompts that were seen then are
    computed first (if there are any), and the scheduler looks again; or else after N further steps.
    """
    count = min(round(interval), MAX_LOOKS)
    left = ((np.arange(count) + 0.5) / count * interval - 0.5).reshape(-1, *(1,) * decode_s.ndim) * decode_s
    busy = np.minimum(mix.shares.sum(axis=0) * interval, 1.0)
    prompts_s = interval * (step_s - decode_s) / np.maximum(busy, 1e-12)
    late_s = entry_s - left
    missed_s = np.maximum(interval * decode_s, late_s + interval * step_s / 2)
    again_s = busy * np.where(late_s <= prompts_s, prompts_s, np.maximum(prompts_s + interval * decode_s, missed_s))
    found_s = np.where((late_s <= 0) & (left > 0), left, left + again_s + (1 - busy) * missed_s).mean(axis=0)
    idle = _idle_frac(entry_s, step_s, mix, slots)
    return idle * entry_s + (1 - idle) * np.maximum(found_s, entry_s)


def _own_s(has_mixed_steps: bool, mix: Mix, costs: _Costs, prompt: Floats) -> tuple[Floats, Floats]:
    """A prompt's own steps, and those of the prompts ahead of it."""
    if not has_mixed_steps:  # more prompts than a step takes run in several, and end one after the other
        ends = np.maximum(mix.chunks / np.maximum(mix.room_tokens, prompt), 1.0)
        own_s = _with_me_s(mix, costs, (ends + 1) / (2 * ends))
        return own_s, np.zeros_like(own_s)
    with_me_s = _with_me_s(mix, costs)
    size = prompt / mix.room_tokens
    more_s: Floats = np.where(
        size <= 1, with_me_s - costs.decode_s, (size + mix.load / 2) * (costs.chunk_s[1] - costs.decode_s)
    )
    return mix.own_steps * costs.decode_s + more_s, mix.wait_steps * costs.chunk_s[1]


def _with_me_s(mix: Mix, costs: _Costs, until_frac: Floats | float = 1.0) -> Floats:
    """Steps as a prompt token sees them, or until a part of them is done."""
    many = np.maximum(mix.shares * mix.chunks, 1e-12)
    return np.sum(many * costs.chunk_s * until_frac, axis=0) / np.sum(many, axis=0)


def _mean_s(deployment: Deployment, mix: Mix, costs: _Costs) -> Floats:
    """The mean step (where prompts run alone: from one decode step to the next).

    Ranks that share experts step together, so each waits for the longest chunk of any: with ``ranks`` of them, none has
    more than the small one in (1 - share of large ones)^ranks of all steps. What the experts add grows with all tokens,
    however they are dealt.
    """
    more_s = costs.chunk_s - costs.decode_s if deployment.engine.has_mixed_steps else costs.chunk_s
    ranks = deployment.layout.dp if has_exchange(deployment) else 1
    if ranks == 1:
        return costs.decode_s + (mix.shares * more_s).sum(axis=0)
    own_s = np.maximum(more_s - costs.together_s, 0.0)
    none, small = (1.0 - mix.shares.sum(axis=0)) ** ranks, (1.0 - mix.shares[1]) ** ranks
    return (
        costs.decode_s
        + (mix.shares * np.minimum(costs.together_s, more_s)).sum(axis=0)
        + (small - none) * own_s[0]
        + (1.0 - small) * own_s[1]
    )


def _costs(deployment: Deployment, ticks: Ticks, mix: Mix, slots: Floats, prompt: Floats) -> _Costs:
    """Durations of the costed steps, and how full the fullest is."""
    time_s = _passes_s(deployment, ticks).reshape(-1, mix.decoding.size)
    few, more, full = time_s[0], time_s[1], time_s[-1]
    decoding = np.asarray(mix.decoding, np.float64)
    part = decoding - np.floor(decoding)
    part = np.where(decoding >= 1, part, 1.0)
    decode_s: Floats = np.add((1 - part) * few, part * more)
    together_s = _together_s(deployment, ticks, mix.decoding.size)
    costs = _Costs(
        decode_s=decode_s,
        chunk_s=time_s[2:4],
        together_s=together_s[2:4],
        full_s=full,
        full_prompts=mix.room_tokens / prompt,
        node_tokens=_nodes(mix, slots, prompt),
        node_s=time_s[2:],
        node_together_s=together_s[2:] - together_s[1],
    )
    return _at_chunks(costs, mix)


def _nodes(mix: Mix, slots: Floats, prompt: Floats) -> Floats:
    """Prompt tokens of the steps that are costed: a small and a large chunk, and all that a step takes."""
    return np.stack([*np.minimum(mix.chunks, mix.room_tokens), np.minimum(mix.room_tokens, slots * prompt)])


def _at_chunks(costs: _Costs, mix: Mix) -> _Costs:
    """The same with the chunks of a mix: on the lines between the costed ones. More prompts than a step takes run in
    several."""
    tokens = costs.node_tokens
    fits = np.minimum(mix.chunks, tokens[2])
    times = mix.chunks / np.maximum(fits, 1e-9)
    low = np.clip((fits - tokens[0]) / np.maximum(tokens[1] - tokens[0], 1e-9), None, 1.0)
    high = np.clip((fits - tokens[1]) / np.maximum(tokens[2] - tokens[1], 1e-9), 0.0, 1.0)
    chunk_s, together_s = (
        np.maximum(n[0] + low * (n[1] - n[0]) + high * (n[2] - n[1]), 0.0)
        for n in (costs.node_s, costs.node_together_s)
    )
    return replace(costs, chunk_s=chunk_s * times, together_s=together_s * times)


def _gathered(has_mixed_steps: bool, entry_s: float, costs: _Costs, slots: Floats) -> Floats:
    """Decode steps whose ends come back at once: those that the front end holds, less those of a step with prompts, and
    half a step until one begins. Where prompts run alone, all of them hold up to as much (each other smoothly)."""
    if not has_mixed_steps:
        all_s = costs.full_s * np.maximum(slots / costs.full_prompts, 1.0)
        return np.maximum(entry_s * all_s / (entry_s + all_s) / costs.decode_s - 0.5, 0.0)
    return np.maximum(entry_s / costs.decode_s - np.maximum(entry_s / costs.full_s, 1.0) - 0.5, 0.0)


def _together_s(deployment: Deployment, ticks: Ticks, size: int) -> Floats:
    """Time of the parts that ranks with shared experts do together, by block."""
    if not has_exchange(deployment):
        return np.zeros((5, 1))
    parts = [p.time_s for p in ticks.done.parts if p.name in ("experts", "dispatch", "combine")]
    together_s: Floats = np.sum(parts, axis=0)
    return together_s.reshape(-1, size)


def _passes_s(deployment: Deployment, ticks: Ticks) -> NDArray[np.float64]:
    """From one step of a batch to its next: a pass, or where that is longer the slowest stage for every batch."""
    pp = deployment.layout.pp
    return np.asarray(ticks.time_s if pp == 1 else np.maximum(ticks.time_s, pp * ticks.stage_s), np.float64)


def _tick_nodes(deployment: Deployment, mix: Mix, slots: Floats, prompt: Floats, context: float) -> Ticks:
    """The steps to be costed, block by block: decodes alone (as many or one fewer, as many or one more), beside a small
    and beside a large chunk, and where a run starts at once, one that is full of prompts.

    A chunk's attention sees half of the prompt on average.
    """
    decoding, beside = mix.decoding, deployment.engine.has_mixed_steps * mix.decoding
    chunks = np.stack([*np.zeros((2, slots.size)), *_nodes(mix, slots, prompt)])
    prompts = np.ceil(chunks / prompt - 1e-6)
    tokens = chunks / np.maximum(prompts, 1.0)
    alone = np.maximum(np.stack([np.floor(decoding), np.ceil(decoding)]), 1.0)
    padded = captured(alone.astype(np.int64)) if deployment.engine.has_cuda_graphs else alone
    decodes = np.stack([*padded, beside, beside, beside / 2])
    contexts = np.full(chunks.shape, context)
    contexts[:2] *= alone / padded  # padding reads no cache
    ends = (prompt + tokens) / 2
    return tick(deployment, steps_of(prompts.ravel(), tokens.ravel(), ends.ravel(), decodes.ravel(), contexts.ravel()))
