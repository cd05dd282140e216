"""One agent's work as a graph of stages, each on the kind of machine that makes the whole cheapest within a time limit.

A stage occupies a machine for ``busy_s`` a request (shared with others of its batch) and holds the request up for
``wait_s``. It begins when every stage that it follows has ended, and what passes between two crosses a link unless both
stand on the same kind of machine:

    min  sum usd_per_s[m] busy[s, m] x[s, m]       sum_m x[s, m] = 1       z[a, b] >= x[a, m] - x[b, m]
    t[b] >= t[a] + bytes[a] / link z[a, b] + sum_m wait[b, m] x[b, m]       t <= limit       x whole
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from orrery.base.program import Program, solved
from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.serving.runs import static_run

BATCHES = tuple(2**i for i in range(11))
"""Batches tried for the answers of one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Work of one request on one machine in one stage."""

    busy_s: float
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage, what it takes on each kind of machine that can run it, what it hands on, and the stages that it follows
    (by their place among all; None: the one before it)."""

    name: str
    work: Mapping[str, Work]
    passed_bytes: float
    after: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """Which machine runs each stage; cost and latency of one request."""

    machines: tuple[str, ...]
    usd: float
    latency_s: float


def cheapest(
    stages: Sequence[Stage],
    usd_per_s: Mapping[str, float],
    link_bytes_per_s: float,
    limit_s: float,
    allowed: Sequence[str],
) -> Placed | None:
    """The best of all placements on ``allowed`` machines; None where none is fast enough."""
    choices = [[name for name in allowed if name in stage.work] for stage in stages]
    if not all(choices):
        return None
    x = [(k, name) for k, names in enumerate(choices) for name in names]
    edges = edges_of(stages)
    found = solved(_program(stages, choices, x, edges, usd_per_s, link_bytes_per_s, limit_s), gap_frac=0.0)
    if found is None:
        return None
    chosen = dict(x[i] for i in np.flatnonzero(found.x[: len(x)] > 0.5).tolist())
    machines = tuple(chosen[k] for k in range(len(stages)))
    return Placed(
        machines=machines,
        usd=sum(usd_per_s[name] * s.work[name].busy_s for s, name in zip(stages, machines, strict=True)),
        latency_s=_latency_s(stages, machines, edges, link_bytes_per_s),
    )


def edges_of(stages: Sequence[Stage]) -> list[tuple[int, int]]:
    """Each stage that follows another, in an order in which what comes first stands first."""
    if all(stage.after is None for stage in stages):
        return list(pairwise(range(len(stages))))
    return [(a, b) for b, stage in enumerate(stages) for a in ((b - 1,) if stage.after is None else stage.after)]


def _program(
    stages: Sequence[Stage],
    choices: Sequence[Sequence[str]],
    x: Sequence[tuple[int, str]],
    edges: Sequence[tuple[int, int]],
    usd_per_s: Mapping[str, float],
    link_bytes_per_s: float,
    limit_s: float,
) -> Program:
    """Unknowns: where each stage runs, which edges cross a link, and when stages end, as parts of the limit."""
    at = {key: i for i, key in enumerate(x)}
    crossed, ends, width = len(x), len(x) + len(edges), len(x) + len(edges) + len(stages)
    unit_s = limit_s if math.isfinite(limit_s) else 1.0
    rows: list[tuple[dict[int, float], float, float]] = [
        ({at[k, name]: 1.0 for name in names}, 1.0, 1.0) for k, names in enumerate(choices)
    ]
    for e, (a, b) in enumerate(edges):
        for name in choices[a]:
            row = {at[a, name]: 1.0, crossed + e: -1.0}
            if (b, name) in at:
                row[at[b, name]] = -1.0
            rows.append((row, -np.inf, 0.0))
    for a, b, e in (*((a, b, e) for e, (a, b) in enumerate(edges)), *((-1, k, -1) for k in range(len(stages)))):
        row = {ends + b: 1.0, **{at[b, name]: -stages[b].work[name].wait_s / unit_s for name in choices[b]}}
        if a >= 0:
            row |= {ends + a: -1.0, crossed + e: -stages[a].passed_bytes / link_bytes_per_s / unit_s}
        rows.append((row, 0.0, np.inf))
    matrix = np.zeros((len(rows), width))
    for r, (row, _, _) in enumerate(rows):
        matrix[r, list(row)] = list(row.values())
    cost = np.array([usd_per_s[name] * stages[k].work[name].busy_s for k, name in x])
    return Program(
        cost=np.concatenate([cost / (float(cost.max()) or 1.0), np.zeros(width - len(x))]),
        matrix=matrix,
        row_low=np.array([low for _, low, _ in rows]),
        row_high=np.array([high for _, _, high in rows]),
        most=np.concatenate([np.ones(ends), np.full(len(stages), 1.0 if math.isfinite(limit_s) else np.inf)]),
        is_whole=np.arange(width) < ends,
    )


def _latency_s(
    stages: Sequence[Stage], machines: Sequence[str], edges: Sequence[tuple[int, int]], link_bytes_per_s: float
) -> float:
    """When the last stage ends."""
    end_s = [0.0] * len(stages)
    for b, stage in enumerate(stages):
        before = (
            end_s[a] + (stages[a].passed_bytes / link_bytes_per_s if machines[a] != machines[b] else 0.0)
            for a, to in edges
            if to == b
        )
        end_s[b] = max(before, default=0.0) + stage.work[machines[b]].wait_s
    return max(end_s)


def prompt_work(deployment: Deployment, input_tokens: float) -> Work | None:
    """A prompt alone on a machine; None where the model does not fit."""
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return None
    run = static_run(deployment, memory, 1.0, input_tokens, 1.0)
    return Work(busy_s=run.latency_s, wait_s=run.latency_s)


def answer_work(
    deployment: Deployment, input_tokens: float, output_tokens: float, slo_tpot_s: float = math.inf
) -> Work | None:
    """Answers in the largest batch whose tokens come in time; None where no batch fits or is fast enough."""
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return None
    best: Work | None = None
    for batch in BATCHES:
        if batch > min(memory.max_num_seqs, memory.sequences(input_tokens + output_tokens)):
            break
        run = static_run(deployment, memory, float(batch), input_tokens, output_tokens)
        answer_s = run.latency_s * (1.0 - run.prompt_share)
        if run.tpot_s <= slo_tpot_s and (best is None or answer_s / batch < best.busy_s):
            best = Work(busy_s=answer_s / batch, wait_s=answer_s)
    return best


def prompt_cache_bytes(deployment: Deployment, input_tokens: float) -> float:
    """Keys and values of a prompt, which follow a request from the machine of prompts to that of answers."""
    memory = memory_of(deployment)
    return 0.0 if isinstance(memory, Infeasible) else memory.cache.sequence_bytes(input_tokens)
