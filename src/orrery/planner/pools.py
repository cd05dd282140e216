"""Pools of their own for prefill and decode: what one replica of a layout carries alone, and how many belong together.

prefill     requests/s of a replica that only reads prompts, while the mean TTFT stays within its limit
decode      requests/s of one that only decodes: n sequences, a token each per step, so n / ((outputs - 1) x TPOT)
together    the lesser of both pools' rates; a cache handed over costs its link in the simulation that follows

    requests/s = min(prefill replicas x prefill rate, decode replicas x decode rate)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.execution.batch import Floats
from orrery.execution.layout import Deployment, Layout
from orrery.execution.memory import Infeasible, Memory, memory_of
from orrery.planner.budget import Budget, Weight, weight_of
from orrery.planner.curve import Curve, highest_concurrency
from orrery.planner.goal import Goal, Objectives
from orrery.planner.search import curve_of
from orrery.planner.space import Candidate
from orrery.serving.clock import steps_of, tick
from orrery.serving.drafted import drafted
from orrery.serving.steady import batch_limit

RUNGS = 24
"""Batch sizes at which a decode step is priced."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Worker:
    """One replica of one phase, as busy as its objective allows."""

    candidate: Candidate
    requests_per_s: float

    @property
    def layout(self) -> Layout:
        """Its parallel degrees."""
        return self.candidate.deployment.layout

    @property
    def weight(self) -> Weight:
        """Its part of a budget."""
        return weight_of(self.candidate.option, self.layout.num_devices)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pairing:
    """Replicas of both phases side by side."""

    prefill: Worker
    num_prefill: int
    decode: Worker
    num_decode: int

    @property
    def requests_per_s(self) -> float:
        """Rate of both pools, without the limit of the cache's transfer."""
        return min(self.num_prefill * self.prefill.requests_per_s, self.num_decode * self.decode.requests_per_s)

    @property
    def weight(self) -> Weight:
        """Part of a budget that both pools take."""
        return self.prefill.weight.times(self.num_prefill) + self.decode.weight.times(self.num_decode)


def prefill_workers(goal: Goal, candidates: Iterable[Candidate]) -> list[Worker]:
    """A worker for every candidate that can read the prompts within the limit of TTFT."""
    alone = replace(
        goal, traffic=replace(goal.traffic, output_tokens=1.0), objectives=Objectives(ttft_s=goal.objectives.ttft_s)
    )
    found: list[Worker] = []
    for candidate in candidates:
        curve = curve_of(alone, candidate)
        if isinstance(curve, Curve) and (highest := highest_concurrency(alone.objectives, curve)) is not None:
            rate = curve.at(highest, np.maximum.accumulate(curve.requests_per_s))
            found.append(Worker(candidate=candidate, requests_per_s=rate))
    return found


def decode_workers(goal: Goal, candidates: Iterable[Candidate]) -> list[Worker]:
    """A worker for every candidate that can decode within the limit of TPOT."""
    found: list[Worker] = []
    for candidate in candidates:
        memory = memory_of(candidate.deployment)
        if isinstance(memory, Infeasible) or memory.kv_capacity_tokens < goal.traffic.fitting_tokens:
            continue
        try:
            rate = decode_rate(
                candidate.deployment,
                memory,
                goal.traffic.input_tokens,
                goal.traffic.output_tokens,
                goal.objectives.tpot_s,
            )
        except OutOfRange:
            continue
        if rate > 0.0:
            found.append(Worker(candidate=candidate, requests_per_s=rate))
    return found


def decode_rate(
    deployment: Deployment, memory: Memory, input_tokens: float, output_tokens: float, limit_s: float
) -> float:
    """Requests/s of a replica that only decodes, with as many sequences as a limit on TPOT and the KV cache allow; 0
    where even one sequence is too slow."""
    steps = drafted(deployment, memory, input_tokens, output_tokens)
    limit = batch_limit(steps.deployment, steps.memory, input_tokens, steps.output_steps)
    sequences = np.unique(np.rint(np.geomspace(1.0, max(int(limit), 1), RUNGS)))
    tpot_s = _decode_step_s(steps.deployment, sequences, input_tokens + steps.output_steps / 2)
    tpot_s = tpot_s / steps.tokens_per_step
    life_s = max(output_tokens - 1.0, 1.0) * tpot_s
    rates = np.where(tpot_s <= limit_s, sequences / life_s, 0.0)
    return float(rates.max()) * deployment.layout.dp


def _decode_step_s(deployment: Deployment, sequences: Floats, context: float) -> Floats:
    """Seconds from one token of a sequence to its next; a pipeline has as many batches in flight as stages."""
    each = np.maximum(sequences / deployment.layout.pp, 1.0)
    return tick(deployment, steps_of(0.0, 0.0, 0.0, each, context)).time_s


def best_of_each_layout(workers: Iterable[Worker], count: int, budget: Budget) -> list[Worker]:
    """The best workers by requests/s for their share of the budget, each layout of a device and clock once."""
    found: dict[tuple[str, float, Layout], Worker] = {}
    for worker in sorted(workers, key=lambda w: -w.requests_per_s / budget.share(w.weight)):
        option = worker.candidate.option
        found.setdefault((option.device.name, option.clock_frac, worker.layout), worker)
    return list(found.values())[:count]


def pairings(
    prefill: Sequence[Worker], decode: Sequence[Worker], budget: Budget, rate_per_s: float = 0.0
) -> list[Pairing]:
    """The best numbers of replicas for every two workers, best first (``rank_at``)."""
    found = [best for p in prefill for d in decode if (best := _best(p, d, budget, rate_per_s)) is not None]
    return sorted(found, key=lambda pairing: _rank(pairing, budget, rate_per_s))


def _best(prefill: Worker, decode: Worker, budget: Budget, rate_per_s: float) -> Pairing | None:
    sized: list[Pairing] = []
    for num_prefill in range(1, budget.most(prefill.weight) + 1):
        most = budget.less(prefill.weight.times(num_prefill)).most(decode.weight)
        balanced = num_prefill * prefill.requests_per_s / decode.requests_per_s
        for num_decode in {min(most, ceil(balanced)), min(most, int(balanced))} - {0}:
            sized.append(Pairing(prefill=prefill, num_prefill=num_prefill, decode=decode, num_decode=num_decode))
    return min(sized, key=lambda pairing: _rank(pairing, budget, rate_per_s), default=None)


def _rank(pairing: Pairing, budget: Budget, rate_per_s: float) -> tuple[float, ...]:
    return rank_at(pairing.requests_per_s, pairing.weight, budget, rate_per_s)


def rank_at(requests_per_s: float, weight: Weight, budget: Budget, rate_per_s: float) -> tuple[float, ...]:
    """The place of a design among others, the lowest first.

    With a demanded rate: what carries it on the fewest dollars (devices, where a price is unknown; known prices first),
    then the rest by what they carry. Without: by requests/s per device; of a budget of dollars or watts, by requests/s.
    """
    num_devices, usd_per_hour = weight.num_devices, weight.usd_per_hour
    each = requests_per_s / num_devices
    if not rate_per_s:
        return (-each if budget.is_by_devices else -requests_per_s, num_devices)
    if requests_per_s < rate_per_s:
        return (1.0, -requests_per_s)
    return (0.0, float(usd_per_hour is None), num_devices if usd_per_hour is None else usd_per_hour, -each)
