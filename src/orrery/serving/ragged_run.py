"""A service whose engine keeps its batch in one padded tensor and speculates: requests in ragged rounds.

A batch's prompts are read, then rounds follow in which a draft model writes and the model verifies (see
``serving.ragged``). Shifting copies every cache, one sequence and layer at a time; each such copy is a handful of eager
calls of the framework, during which the device waits.
"""

from dataclasses import replace
from functools import cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.execution.batch import Floats, decodes_of
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.execution.power import steps_power_w
from orrery.execution.speculation import Speculation, drafting_s, level_chances, verified_tokens
from orrery.execution.whole_prompts import growing_s
from orrery.serving.clock import steps_of, tick
from orrery.serving.ragged import Ragged, Rounds, Way, padded, pooled, realigned
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import (
    GAP_BINS_PER_DECADE,
    GAP_DECADES,
    GAP_LEAST_S,
    STEP,
    TIMELINE,
    Simulated,
)
from orrery.serving.simulation.service import Service

CALL_S = 1e-5
"""Time of one eager call of the framework on the host; assumed: a few microseconds of Python and as many of launch."""

CALLS_PER_SHIFT, CALLS_PER_STACK = 6, 2
"""Calls a layer: four indices read back and two copies for each sequence; one to join each of keys and values."""

POOL_BATCHES = 6
"""Batches of sequences that a pool holds where nothing is said: the authors' code has 48 for a batch of 8."""

GRID = 64
NUM_BINS = 200


def serve_ragged(
    service: Service, requests: Requests, *, way: Way, batch: int, pool: int = 0, seed: int = 0
) -> Simulated | Infeasible:
    """Serve requests that are all there, ``batch`` at a time; a pool holds ``pool`` sequences (0: six batches)."""
    target, guessing = service.pools[0].deployment, service.speculation
    if guessing is None:
        raise ScenarioError(
            "draft_batching: nothing is drafted; write draft_tokens = 4 and acceptance = 0.7 beside it."
        )
    memory = memory_of(target)
    if isinstance(memory, Infeasible):
        return memory
    size = min(batch, memory.max_num_seqs, requests.count)
    if lacking := _lacking(requests, guessing, memory, size, way):
        return lacking
    rounds = rounds_of(target, guessing, size, int((requests.input_tokens + requests.output_tokens).max()))
    inputs, outputs = requests.input_tokens, requests.output_tokens - 1
    if way == "pool":
        run = pooled(rounds, inputs, size, pool or POOL_BATCHES * size, seed, outputs)
    else:
        run = (realigned if way == "realign" else padded)(rounds, inputs, size, seed, outputs)
    return _result(service, requests, run, memory, size)


def rounds_of(target: Deployment, guessing: Speculation, sequences: int, longest_tokens: int) -> Rounds:
    """Costs of a round on a deployment, in steps of 64 tokens of length."""
    checked = verified_tokens(guessing) - 1
    lengths = np.arange(1, ceil(4 * longest_tokens / GRID) + 2) * GRID
    layers = target.model.num_layers

    @cache
    def checks(count: int) -> Floats:
        batch = steps_of(0.0, 0.0, 0.0, np.full(lengths.size, float(count)), lengths.astype(np.float64))
        return tick(target, replace(batch, guesses=checked)).time_s

    @cache
    def prompts(count: int) -> Floats:
        size = lengths.astype(np.float64)
        return tick(target, steps_of(float(count), size, size, 0.0, 0.0)).time_s

    def shift_s(count: int, length: int) -> float:
        return layers * count * CALLS_PER_SHIFT * CALL_S + growing_s(target, count, length)

    def stack_s(count: int, length: int) -> float:
        return layers * CALLS_PER_STACK * CALL_S + growing_s(target, count, length)

    fracs = level_chances(guessing)
    return Rounds(
        draft_s=lambda count, length: drafting_s(guessing, count),
        check_s=lambda count, length: float(checks(count)[min(length // GRID, lengths.size - 1)]),
        prompt_s=lambda count, length: float(prompts(count)[min(length // GRID, lengths.size - 1)]),
        shift_s=shift_s,
        stack_s=stack_s,
        draft_tokens=len(fracs),
        acceptance_frac=fracs[0],
        acceptance_fracs=fracs,
        output_tokens=1,
    )


def _lacking(requests: Requests, guessing: Speculation, memory: Memory, batch: int, way: Way) -> Infeasible | None:
    """Memory of the longest padded batch beyond the cache."""
    tokens = int((requests.input_tokens + requests.output_tokens).max())
    if way == "padded":
        tokens = int(requests.input_tokens.max() + requests.output_tokens.max() * verified_tokens(guessing))
    need = batch * memory.cache.sequence_bytes(tokens)
    if need <= memory.kv_capacity_bytes:
        return None
    return Infeasible(
        what=f"a padded cache of {batch} sequences and {tokens:,} tokens",
        need=need,
        have=memory.kv_capacity_bytes,
        unit="bytes",
        smallest_change="Write a lower concurrency.",
    )


def _result(service: Service, requests: Requests, run: Ragged, memory: Memory, batch: int) -> Simulated:
    """The run as the simulator's result: sequences are in a batch from when their prompt is read."""
    target = service.pools[0].deployment
    count, end_s = requests.count, run.total_s
    started, first = (np.array([each[i] for i in range(count)]) for each in (run.starts_s, run.firsts_s))
    finish, last = first.copy(), first.copy()
    gaps = np.zeros(GAP_DECADES * GAP_BINS_PER_DECADE + 1)
    sums = np.zeros(2)
    for done in run.rounds:
        for i, taken in zip(done.members, done.taken, strict=True):
            if taken:
                gap_s, last[i], finish[i] = done.end_s - last[i], done.end_s, done.end_s
                _count_gaps(gaps, sums, gap_s, taken)
    power_w = _power_w(target, batch, run)
    idle_w = target.cluster.device.idle_power_w * target.layout.num_devices
    busy_s = run.prompt_s + run.draft_s + run.check_s
    table, edges = _timeline(requests, run, started, first, finish, memory, power_w, idle_w)
    return Simulated(
        requests=requests,
        arrive_s=np.zeros(count) if not _is_closed(batch, count) else started,
        admitted_s=started,
        first_token_s=first,
        finish_s=finish,
        cached_tokens=np.zeros(count, dtype=np.int64),
        preemptions=np.zeros(count, dtype=np.int64),
        machine=np.zeros(count, dtype=np.int64),
        gap_counts=gaps,
        gap_sum_s=float(sums[0]),
        gap_squares_s2=float(sums[1]),
        timeline_s=edges,
        timeline=table,
        step_log=np.zeros((0, len(STEP))),
        num_steps=run.num_rounds,
        duration_s=end_s,
        num_machines=1,
        num_devices=service.num_devices,
        energy_j=power_w * busy_s + idle_w * (end_s - busy_s),
        kv_capacity_bytes=memory.kv_capacity_bytes,
        idle_frac=run.align_s / end_s,
        max_running=batch,
        counters={
            "rounds": float(run.num_rounds),
            "shifted_rounds": float(run.num_shifts),
            "grouped_rounds": float(run.num_grouped),
            "draft_s": run.draft_s,
            "verify_s": run.check_s,
            "align_s": run.align_s,
            "prompt_s": run.prompt_s,
            "align_overhead_frac": run.align_overhead_frac,
        },
    )


def _is_closed(batch: int, count: int) -> bool:
    return batch < count


def _count_gaps(gaps: Floats, sums: Floats, gap_s: float, taken: int) -> None:
    """One wait for the first of the tokens that a round brings; the others come at once with it."""
    for wait_s, weight in ((gap_s, 1.0), (0.0, taken - 1.0)):
        at = int(np.log10(max(wait_s, GAP_LEAST_S) / GAP_LEAST_S) * GAP_BINS_PER_DECADE)
        gaps[min(at, gaps.size - 1)] += weight
        sums += weight * np.array([wait_s, wait_s * wait_s])


def _power_w(target: Deployment, batch: int, run: Ragged) -> float:
    """Power (W) of all devices while they verify, in a round of the middle length."""
    length = max(1, round(float(np.median([r.length for r in run.rounds])))) if run.rounds else 1
    done = tick(target, decodes_of(np.array([batch]), length))
    return steps_power_w(target, done.done, (0,), float(done.time_s[0])) * target.layout.num_devices


def _timeline(
    requests: Requests,
    run: Ragged,
    started: Floats,
    first: Floats,
    finish: Floats,
    memory: Memory,
    power_w: float,
    idle_w: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sums and integrals over bins of equal width."""
    edges = np.linspace(0.0, run.total_s, NUM_BINS + 1)
    width_s = edges[1] - edges[0]
    table = np.zeros((NUM_BINS, len(TIMELINE)))

    def sums(name: str, at_s: Floats, weights: Floats | None = None) -> None:
        table[:, TIMELINE.index(name)] = np.histogram(at_s, edges, weights=weights)[0]

    def held(name: str, weights: Floats) -> None:
        inside = np.clip(edges[None, 1:], started[:, None], finish[:, None]) - np.clip(
            edges[None, :-1], started[:, None], finish[:, None]
        )
        table[:, TIMELINE.index(name)] = weights @ inside

    ends = np.array([r.end_s for r in run.rounds])
    sums("steps", ends)
    sums("decode_tokens", ends, np.array([float(sum(r.taken)) for r in run.rounds]))
    sums("busy_s", ends, np.array([r.end_s - r.start_s for r in run.rounds]))
    sums("prompt_tokens", first, requests.input_tokens.astype(np.float64))
    sums("arrivals", started)
    sums("finishes", finish)
    tokens = requests.input_tokens + requests.output_tokens / 2
    held("running", np.ones(requests.count))
    held("kv_bytes", np.array([memory.cache.sequence_bytes(float(t)) for t in tokens]))
    busy = np.minimum(1.0, table[:, TIMELINE.index("busy_s")] / width_s)
    table[:, TIMELINE.index("energy_j")] = width_s * (idle_w + busy * (power_w - idle_w))
    return table, edges
