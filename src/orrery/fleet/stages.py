"""One agent's work as stages, each on the kind of machine that makes the whole cheapest within a time limit.

A stage occupies a machine for ``busy_s`` a request (shared with others of its batch) and holds the request up for
``wait_s``. What passes from one stage to the next crosses a link unless both stand on the same machine:

    min  sum usd_per_s x busy_s     with     sum wait_s + sum bytes / link <= limit
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from orrery.execution.layout import Deployment
from orrery.execution.memory import Infeasible, memory_of
from orrery.serving.runs import static_run

BATCHES = tuple(2**i for i in range(11))
"""Batches tried for the answers of one machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What one request takes of one machine in one stage."""

    busy_s: float
    wait_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A stage, what it takes on each kind of machine that can run it, and what it hands on."""

    name: str
    work: Mapping[str, Work]
    passed_bytes: float


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
    placed = (_placed(stages, machines, usd_per_s, link_bytes_per_s) for machines in product(*choices))
    return min((p for p in placed if p.latency_s <= limit_s), key=lambda p: p.usd, default=None)


def _placed(
    stages: Sequence[Stage], machines: tuple[str, ...], usd_per_s: Mapping[str, float], link_bytes_per_s: float
) -> Placed:
    works = [stage.work[name] for stage, name in zip(stages, machines, strict=True)]
    moved = sum(s.passed_bytes for s, a, b in zip(stages, machines, machines[1:], strict=False) if a != b)
    return Placed(
        machines=machines,
        usd=sum(usd_per_s[name] * w.busy_s for name, w in zip(machines, works, strict=True)),
        latency_s=sum(w.wait_s for w in works) + moved / link_bytes_per_s,
    )


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
