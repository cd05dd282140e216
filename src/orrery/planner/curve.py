"""One candidate along concurrency: its latencies and rate on a ladder, finer where the objectives cut it off."""

from dataclasses import dataclass
from math import log

import numpy as np

from orrery.execution.batch import Floats
from orrery.execution.memory import Memory
from orrery.planner.goal import Goal, Objectives
from orrery.planner.space import Candidate
from orrery.serving.drafted import drafted
from orrery.serving.online import open_loop

RUNGS = 16
"""Concurrencies on the ladder; between two of them the curves are interpolated on logarithms."""

FINER = 6
"""Further concurrencies between the two rungs where an objective is first missed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """One candidate swept: latencies and rates of one replica along its ladder."""

    candidate: Candidate
    memory: Memory
    concurrency: Floats
    ttft_s: Floats
    tpot_s: Floats
    e2el_s: Floats
    requests_per_s: Floats

    def metric(self, name: str) -> Floats:
        """``ttft_s``, ``tpot_s`` or ``e2el_s`` along the ladder."""
        values: Floats = getattr(self, name)
        return values

    def at(self, concurrency: float, values: Floats) -> float:
        """A curve between its rungs."""
        safe = np.maximum(values, 1e-12)
        return float(np.exp(np.interp(log(concurrency), np.log(self.concurrency), np.log(safe))))


def swept(goal: Goal, candidate: Candidate, memory: Memory, ladder: Floats) -> Curve:
    """The candidate under Poisson arrivals at each concurrency of the ladder."""
    traffic = goal.traffic
    found = drafted(candidate.deployment, memory, traffic.input_tokens, traffic.output_tokens)
    points = open_loop(found.deployment, found.memory, traffic.input_tokens, found.output_steps, ladder)
    later = max(0.0, traffic.output_tokens - 1.0)
    tpot_s = points.tpot_s / found.tokens_per_step if later else np.zeros_like(points.tpot_s)
    return Curve(
        candidate=candidate,
        memory=memory,
        concurrency=ladder,
        ttft_s=points.ttft_s,
        tpot_s=tpot_s,
        e2el_s=points.ttft_s + later * tpot_s,
        requests_per_s=points.requests_per_s,
    )


def refined(goal: Goal, curve: Curve) -> Curve:
    """The same curve with more points where the highest concurrency lies, so that its limit is not interpolated far."""
    highest = highest_concurrency(goal.objectives, curve)
    if highest is None or highest >= curve.concurrency[-1]:
        return curve
    above = int(np.searchsorted(curve.concurrency, highest, side="right"))
    low, high = float(curve.concurrency[above - 1]), float(curve.concurrency[above])
    between = np.geomspace(low, high, FINER + 2)[1:-1]
    finer = swept(goal, curve.candidate, curve.memory, between)
    return Curve(
        candidate=curve.candidate,
        memory=curve.memory,
        concurrency=np.insert(curve.concurrency, above, finer.concurrency),
        ttft_s=np.insert(curve.ttft_s, above, finer.ttft_s),
        tpot_s=np.insert(curve.tpot_s, above, finer.tpot_s),
        e2el_s=np.insert(curve.e2el_s, above, finer.e2el_s),
        requests_per_s=np.insert(curve.requests_per_s, above, finer.requests_per_s),
    )


def highest_concurrency(objectives: Objectives, curve: Curve) -> float | None:
    """The largest concurrency below which every objective holds; None where even the lowest misses one."""
    highest = float(curve.concurrency[-1])
    for name, limit in objectives.limits():
        values = curve.metric(name)
        over = np.flatnonzero(values > limit)
        if not over.size:
            continue
        first = int(over[0])
        if first == 0:
            return None
        x, y = np.log(curve.concurrency[first - 1 : first + 1]), np.log(values[first - 1 : first + 1])
        highest = min(highest, float(np.exp(np.interp(log(limit), y, x))))
    return highest


def in_flight_of(curve: Curve, people: float, think_s: float) -> float:
    """Requests in flight of so many people, of whom the others think: where in flight + rate x pause is all of them."""
    rising = np.maximum.accumulate(curve.requests_per_s)
    busy = curve.concurrency + rising * think_s
    if people <= busy[0]:
        return float(people * curve.e2el_s[0] / (curve.e2el_s[0] + think_s))
    return float(np.exp(np.interp(log(people), np.log(busy), np.log(curve.concurrency))))


def concurrency_at(curve: Curve, rate: float, output_tokens: float) -> float:
    """Requests in flight when ``rate`` arrive and leave: the curve inverted; below it, Little's law at its foot."""
    rising = np.maximum.accumulate(curve.requests_per_s)
    if rate <= rising[0]:
        return float(rate * curve.e2el_s[0])
    return float(np.exp(np.interp(log(rate), np.log(rising), np.log(curve.concurrency))))
