"""Exhaustive search: every candidate swept over concurrency, the objectives applied, the traffic spread over replicas.

Each candidate is swept over a geometric ladder of concurrencies up to what its cache and batch limit hold. Then::

    highest   = the largest concurrency whose mean latencies meet the objectives
    replicas  = ceil(demanded rate / rate at the highest concurrency)
    operation = the concurrency at which as many requests leave as arrive (Little's law on the swept curve)
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.execution.memory import Infeasible, memory_of
from orrery.planner.budget import weight_of
from orrery.planner.curve import RUNGS, Curve, concurrency_at, highest_concurrency, in_flight_of, refined, swept
from orrery.planner.detail import workload_of
from orrery.planner.goal import Goal, Objectives
from orrery.planner.pareto import front
from orrery.planner.plan import FrontPoint, Operation, Reason, Rejected, SearchResult
from orrery.planner.rejection_reasons import explain
from orrery.planner.space import Candidate
from orrery.planner.workers import HERE, Workers, each
from orrery.serving.estimate import estimate
from orrery.serving.steady import batch_limit


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DroppedCandidate:
    """A candidate that fell out of the search, before it is explained."""

    candidate: Candidate
    reason: Reason
    infeasible: Infeasible
    excess_ratio: float


def search(
    goal: Goal,
    candidates: Iterable[Candidate],
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    workers: Workers = HERE,
) -> SearchResult:
    """Every candidate either becomes a plan or says why not; ``on_progress`` is told (done, total)."""
    every = list(candidates)
    swept_ones = each(curve_of, goal, every, workers, lambda done: on_progress(done, len(every)))
    tried = [replace(found, candidate=own) for found, own in zip(swept_ones, every, strict=True)]
    misses = [t for t in tried if isinstance(t, DroppedCandidate)]
    curves = [t for t in tried if isinstance(t, Curve)]
    curve_by_candidate = {id(curve.candidate): curve for curve in curves}
    rough = [_valued(goal, operate(goal, curve)) for curve in curves]
    better = ranking(goal)
    working = sorted((o for o in rough if isinstance(o, Operation)), key=better)
    short = sorted((o for o in rough if isinstance(o, DroppedCandidate)), key=lambda miss: miss.excess_ratio)
    worth = [curve_by_candidate[id(c)] for c in best_budgets(o.candidate for o in (*working, *short))]
    total = len(every) + len(worth)
    finer = each(refined, goal, worth, workers, lambda done: on_progress(len(every) + done, total))
    fine = [replace(found, candidate=own.candidate) for found, own in zip(finer, worth, strict=True)]
    worked = [_valued(goal, operate(goal, curve)) for curve in fine]
    misses += [o for o in worked if isinstance(o, DroppedCandidate)]
    costed = {id(c.candidate): c.concurrency.size for c in (*curves, *fine)}
    plans = tuple(sorted((o for o in worked if isinstance(o, Operation)), key=better))
    return SearchResult(
        plans=plans,
        rejected=tuple(_explained(goal, misses, plans)),
        front=_front(goal, curves),
        num_candidates=len(tried),
        evaluated=sum(costed.values()),
    )


def curve_of(goal: Goal, candidate: Candidate) -> Curve | DroppedCandidate:
    """Sweep one candidate, or say what keeps it from running at all."""
    deployment, traffic = candidate.deployment, goal.traffic
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return DroppedCandidate(
            candidate=candidate, reason="memory", infeasible=memory, excess_ratio=memory.need / memory.have
        )
    room = memory.kv_capacity_tokens
    if room < traffic.fitting_tokens:
        infeasible = Infeasible(
            what="cache for the longest request",
            need=traffic.fitting_tokens,
            have=room,
            unit="tokens",
            smallest_change="",
        )
        return DroppedCandidate(
            candidate=candidate,
            reason="length",
            infeasible=infeasible,
            excess_ratio=traffic.fitting_tokens / max(room, 1),
        )
    limit = batch_limit(deployment, memory, traffic.input_tokens, traffic.output_tokens) * deployment.layout.dp
    ladder = np.geomspace(min(deployment.layout.dp, limit), limit, RUNGS) if limit > 1 else np.ones(1)
    try:
        return swept(goal, candidate, memory, ladder)
    except OutOfRange as error:
        infeasible = Infeasible(what=str(error), need=1.0, have=0.0, unit="ratio", smallest_change="")
        return DroppedCandidate(candidate=candidate, reason="range", infeasible=infeasible, excess_ratio=float("inf"))


def operate(goal: Goal, curve: Curve, least_replicas: int = 1) -> Operation | DroppedCandidate:
    """Put a candidate to work on the goal's traffic."""
    highest = highest_concurrency(goal.objectives, curve)
    if highest is None:
        return _too_slow(goal.objectives, curve)
    candidate = curve.candidate
    most = goal.budget.most(weight_of(candidate.option, candidate.deployment.layout.num_devices))
    top_rate = curve.at(highest, curve.requests_per_s)
    traffic = goal.traffic
    demanded, room = traffic.request_rate_per_s, top_rate
    if traffic.num_users:  # of the people that a replica has room for, some wait for it and the others think
        demanded, room = traffic.num_users, highest + top_rate * traffic.think_s
    least_replicas = max(least_replicas, most) if goal.best == "latency" else least_replicas
    replicas = max(least_replicas, ceil(demanded / room - 1e-9)) if demanded else most
    if replicas > most or not most:
        return _too_few(goal, curve, max(replicas, 1))
    if traffic.num_users:
        people = traffic.num_users / replicas
        concurrency = min(highest, in_flight_of(curve, people, traffic.think_s))
        return _operation(goal, curve, replicas, concurrency, highest, (people - concurrency) / traffic.think_s)
    rate = demanded / replicas if demanded else top_rate
    concurrency = min(highest, concurrency_at(curve, rate, traffic.output_tokens)) if demanded else highest
    return _operation(goal, curve, replicas, concurrency, highest, rate)


def with_replicas(goal: Goal, operation: Operation, replicas: int) -> Operation:
    """The same candidate at work on at least so many replicas, each with its share of the traffic."""
    curve = curve_of(goal, operation.candidate)
    found = curve if isinstance(curve, DroppedCandidate) else operate(goal, refined(goal, curve), replicas)
    found = _valued(goal, found)
    if isinstance(found, DroppedCandidate):
        raise AssertionError(f"a plan stopped working: {found.infeasible}")
    return found


def _valued(goal: Goal, found: Operation | DroppedCandidate) -> Operation | DroppedCandidate:
    """The operation with its energy, where plans are ranked by it."""
    if goal.best != "energy" or isinstance(found, DroppedCandidate):
        return found
    one = estimate(found.deployment, workload_of(goal, found))
    if isinstance(one, Infeasible):
        return found
    power_w = (one.power_w + one.host_power_w) * found.replicas
    return replace(found, energy_j_per_token=power_w / found.output_tokens_per_s)


def _operation(goal: Goal, curve: Curve, replicas: int, concurrency: float, highest: float, rate: float) -> Operation:
    top = curve.at(highest, curve.requests_per_s)
    at = max(concurrency, float(curve.concurrency[0]))
    ttft_s, tpot_s = curve.at(at, curve.ttft_s), curve.at(at, curve.tpot_s)
    return Operation(
        candidate=curve.candidate,
        memory=curve.memory,
        replicas=replicas,
        concurrency=concurrency,
        max_concurrency=highest,
        ttft_s=ttft_s,
        tpot_s=tpot_s if goal.traffic.output_tokens > 1 else 0.0,
        e2el_s=ttft_s + max(goal.traffic.output_tokens - 1.0, 0.0) * tpot_s,
        requests_per_s=rate * replicas,
        highest_requests_per_s=top * replicas,
        output_tokens_per_s=rate * replicas * goal.traffic.output_tokens,
        highest_output_tokens_per_s=top * replicas * goal.traffic.output_tokens,
    )


def _too_slow(objectives: Objectives, curve: Curve) -> DroppedCandidate:
    """Even with one request at a time an objective is missed; the worst one is named."""
    missed = [(float(curve.metric(n)[0]) / limit, n, limit) for n, limit in objectives.limits()]
    ratio, name, limit = max(missed)
    infeasible = Infeasible(
        what=f"{name.removesuffix('_s')} at concurrency {curve.concurrency[0]:.3g}",
        need=limit,
        have=ratio * limit,
        unit="s",
        smallest_change="",
    )
    return DroppedCandidate(candidate=curve.candidate, reason="objective", infeasible=infeasible, excess_ratio=ratio)


def _too_few(goal: Goal, curve: Curve, replicas: int) -> DroppedCandidate:
    """The limit of the budget that is furthest from enough for the replicas."""
    candidate = curve.candidate
    need = weight_of(candidate.option, candidate.deployment.layout.num_devices).times(replicas)
    limits = (
        ("devices", float(need.num_devices), float(goal.max_devices), "devices"),
        ("dollars an hour", need.usd_per_hour or 0.0, goal.max_usd_per_hour, "$/hour"),
        ("watts", need.power_w, goal.max_power_w, "W"),
    )
    what, needed, have, unit = max(limits, key=lambda limit: limit[1] / limit[2])
    infeasible = Infeasible(
        what=f"{what} for {goal.traffic.load_text} within the objectives",
        need=needed,
        have=have,
        unit=unit,
        smallest_change="",
    )
    return DroppedCandidate(
        candidate=candidate, reason="devices", infeasible=infeasible, excess_ratio=goal.budget.share(need)
    )


def ranking(goal: Goal) -> Callable[[Operation], tuple[float, ...]]:
    """The order of plans, best first.

    cost: dollars an hour (devices, where a price is unknown), then the checkpoint's own formats, then headroom.
    throughput: output tokens a second and device.
    latency: seconds of a request, then the price. energy: joules an output token, machines included.
    """

    def by_cost(o: Operation) -> tuple[float, ...]:
        price = o.candidate.option.tariff.usd_per_hour
        return (
            float(price is None),
            o.num_devices * (price if price is not None else 1.0),
            -o.highest_output_tokens_per_s / o.num_devices,
        )

    def by_throughput(o: Operation) -> tuple[float, ...]:
        return (-o.highest_output_tokens_per_s / o.num_devices, float(o.num_devices))

    def by_latency(o: Operation) -> tuple[float, ...]:
        return (o.e2el_s, *by_cost(o))

    def by_energy(o: Operation) -> tuple[float, ...]:
        return (o.energy_j_per_token, *by_cost(o))

    if goal.best in ("latency", "energy"):
        return by_latency if goal.best == "latency" else by_energy
    return by_cost if goal.best == "cost" and goal.traffic.request_rate_per_s else by_throughput


def best_budgets(found: Iterable[Candidate]) -> Iterator[Candidate]:
    """Keep the first (the best) of all candidates that differ in the token budget only."""
    seen: set[object] = set()
    for candidate in found:
        if (key := _key(candidate)) not in seen:
            seen.add(key)
            yield candidate


def _explained(goal: Goal, misses: Sequence[DroppedCandidate], plans: Sequence[Operation]) -> Iterable[Rejected]:
    """The rejected, one for each device, layout and formats, with the smallest change that would make them work."""
    accepted = {_key(p.candidate) for p in plans}
    closest: dict[object, DroppedCandidate] = {}
    for miss in misses:
        key = _key(miss.candidate)
        if key not in accepted and (key not in closest or miss.excess_ratio < closest[key].excess_ratio):
            closest[key] = miss
    others = [m.candidate for m in closest.values() if m.reason not in ("memory", "length", "range")]
    for miss in sorted(closest.values(), key=lambda m: m.excess_ratio):
        infeasible = explain(goal, miss.candidate, miss.reason, miss.infeasible, [p.candidate for p in plans], others)
        yield Rejected(
            candidate=miss.candidate, reason=miss.reason, infeasible=infeasible, excess_ratio=miss.excess_ratio
        )


def _key(candidate: Candidate) -> tuple[object, ...]:
    d = candidate.deployment
    return d.cluster.device.name, d.layout, d.formats


def _front(goal: Goal, curves: Sequence[Curve]) -> tuple[FrontPoint, ...]:
    """The Pareto front over every rung of every candidate that fits."""
    if not curves or goal.traffic.output_tokens <= 1:
        return ()
    tpot = np.concatenate([c.tpot_s for c in curves])
    ttft = np.concatenate([c.ttft_s for c in curves])
    owner = np.concatenate([np.full(c.concurrency.size, i) for i, c in enumerate(curves)])
    rung = np.concatenate([c.concurrency for c in curves])
    per_device = np.concatenate(
        [c.requests_per_s * goal.traffic.output_tokens / c.candidate.deployment.layout.num_devices for c in curves]
    )
    ok = np.ones(tpot.size, dtype=bool)
    for name, limit in goal.objectives.limits():
        ok &= np.concatenate([c.metric(name) for c in curves]) <= limit
    return tuple(
        FrontPoint(
            candidate=curves[int(owner[i])].candidate,
            concurrency=float(rung[i]),
            ttft_s=float(ttft[i]),
            tpot_s=float(tpot[i]),
            output_tokens_per_s_per_user=float(1 / tpot[i]),
            output_tokens_per_s_per_device=float(per_device[i]),
            meets_objectives=bool(ok[i]),
        )
        for i in front(1 / tpot, per_device)
    )
