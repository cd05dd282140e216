"""Pareto fronts of one accelerator: its best layouts by number of devices, each as an estimate of its own.

Every layout is swept over concurrency in the closed form of the planner; of each number of devices those rungs are
kept that no other reaches in both tokens/s per user and tokens/s per device, at most ``PER_SIZE`` of them, and the best
concurrency within the SLOs. Each is estimated as a closed loop: the same answer that ``estimate`` gives to the
settings of the point.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.planner.curve import Curve, highest_concurrency
from orrery.planner.goal import Goal, Objectives
from orrery.planner.pareto import Floats, front
from orrery.planner.search import curve_of
from orrery.planner.space import Candidate, candidates
from orrery.scenario.ask import Answer, estimate
from orrery.scenario.plan import MAX_DEVICES, goal_of, space_of
from orrery.scenario.resolve import find
from orrery.scenario.schema import Scenario, read_scenario

PER_SIZE = 5
"""Points of the front of one number of devices."""

SLOWEST_TOKENS_PER_S = 8.0
"""Tokens/s per user below which no point is kept: slower than people read."""


SHARES = (1.0, 0.95, 0.88)
"""Parts of the highest concurrency that are tried, until the objectives hold."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrontEstimate:
    """One point: the settings that ask for it, and its estimate."""

    settings: Mapping[str, Any]
    answer: Answer


def fronts_of(scenario: Scenario) -> tuple[FrontEstimate, ...]:
    """The points of one device, fewest devices first, fastest for one user first; empty where nothing fits.

    The scenario states one device, the lengths and the formats, which a point takes as they are written (weights may be
    left out where the checkpoint has its own few bits); engine and ``max_devices`` as it likes. The token budget is the
    engine's own. Pipelines are tried only where the model does not fit without.
    """
    goal, _ = goal_of(scenario)
    curves = _curves(scenario, goal)
    found: list[FrontEstimate] = []
    for size in sorted({_size(c.candidate) for c in curves}):
        same = [c for c in curves if _size(c.candidate) == size]
        for curve, rung in _kept(same):
            found += _estimated(scenario, curve.candidate, float(curve.concurrency[rung]))
        found += _best_within(scenario, goal.objectives, same)
    return tuple(_undominated(found))


def _estimated(scenario: Scenario, candidate: Candidate, concurrency: float) -> list[FrontEstimate]:
    """The estimate of one point; none where it does not fit."""
    settings = _settings(scenario, candidate, max(1, round(concurrency)))
    answer = estimate(read_scenario(settings))
    return [FrontEstimate(settings=settings, answer=answer)] if isinstance(answer, Answer) else []


def _best_within(scenario: Scenario, objectives: Objectives, curves: Sequence[Curve]) -> list[FrontEstimate]:
    """The point of the most requests/s within the objectives; a little less load where the closed loop misses them."""
    tops = [(highest, c) for c in curves if (highest := highest_concurrency(objectives, c)) is not None]
    if not objectives.limits() or not tops:
        return []
    highest, curve = max(tops, key=lambda top: top[1].at(top[0], top[1].requests_per_s))
    for share in SHARES:
        found = _estimated(scenario, curve.candidate, highest * share)
        if found and all(getattr(found[0].answer.estimate, name) <= limit for name, limit in objectives.limits()):
            return found
    return []


def _curves(scenario: Scenario, goal: Goal) -> list[Curve]:
    parts = find(scenario, scenario.device or "")
    every = list(candidates(space_of(scenario, [parts], scenario.max_devices or MAX_DEVICES)))
    own = [c for c in every if c.deployment.max_num_batched_tokens == parts.engine.max_num_batched_tokens]
    plain = [c for c in own if c.deployment.layout.pp == 1]
    swept = [f for c in plain if isinstance(f := curve_of(goal, c), Curve)]
    return swept or [f for c in own if c.deployment.layout.pp > 1 and isinstance(f := curve_of(goal, c), Curve)]


def _size(candidate: Candidate) -> int:
    return candidate.deployment.layout.num_devices


def _kept(curves: Sequence[Curve]) -> Iterator[tuple[Curve, int]]:
    """(curve, rung) of the front of curves of one size, fastest for one user first, evenly spread over the speeds."""
    owner = np.concatenate([np.full(c.concurrency.size, i) for i, c in enumerate(curves)])
    rung = np.concatenate([np.arange(c.concurrency.size) for c in curves])
    speed = np.asarray(1 / np.concatenate([c.tpot_s for c in curves]), dtype=np.float64)
    rate = np.asarray(np.concatenate([c.requests_per_s for c in curves]), dtype=np.float64)
    best = front(speed, rate)
    best = best[speed[best] >= SLOWEST_TOKENS_PER_S]
    for i in _spread(np.log(speed[best])):
        yield curves[int(owner[best[i]])], int(rung[best[i]])


def _spread(places: Floats) -> list[int]:
    """Indices of at most ``PER_SIZE`` places, the ends among them, near to even distances."""
    if places.size <= PER_SIZE:
        return list(range(places.size))
    first, last = float(places[0]), float(places[-1])
    targets = [first + (last - first) * n / (PER_SIZE - 1) for n in range(PER_SIZE)]
    return sorted({int(np.abs(places - one).argmin()) for one in targets})


def _undominated(found: Sequence[FrontEstimate]) -> Iterator[FrontEstimate]:
    """Without the points that another one of the same number of devices reaches in both ways."""
    for size in sorted({f.answer.estimate.num_devices for f in found}):
        group = [f for f in found if f.answer.estimate.num_devices == size]
        speed = np.array([1 / f.answer.estimate.tpot_s for f in group], dtype=np.float64)
        rate = np.array([f.answer.estimate.output_tokens_per_s for f in group], dtype=np.float64)
        for i in front(speed, rate):
            yield group[int(i)]


def _settings(scenario: Scenario, candidate: Candidate, concurrency: int) -> dict[str, Any]:
    """The settings of one point, as an address or a scenario file has them."""
    deployment = candidate.deployment
    layout = deployment.layout
    degrees = {way: n for way in ("tp", "pp", "dp", "ep") if (n := getattr(layout, way)) > 1 or way == "tp"}
    inputs = {
        name: value
        for name in ("model", "device", "engine", "engine_version", "input_tokens", "output_tokens", "weights", "kv")
        if (value := getattr(scenario, name)) is not None
    }
    return {**inputs, **degrees, "concurrency": concurrency}
