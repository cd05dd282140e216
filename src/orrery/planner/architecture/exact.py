"""Searches that prove their answer: the integer program over sums, and trying every network."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.planner.architecture.assign import Assigned, Floats, assigned
from orrery.planner.architecture.problem import Networks, Problem, sign
from orrery.planner.pareto import least

MAX_TRIED = 1_000_000
PART = 50_000
NUM_POINTS = 15
FRONT_GAP_FRAC = 1e-3
"""Allowed gap of the front's points, but for its best goal."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """Result of a search: the best network (none where no network keeps the limits), and its front.

    ``bound``: no network of the space has less of the goal (more, of a score); None where that is not known.
    """

    best: Networks  # one line, or none
    front: Networks
    num_evaluated: int
    evaluated: Networks | None = None  # every network that was looked at, as often as it was
    bound: float | None = None
    is_proven: bool = False


def by_program(problem: Problem, goal: str, against: str, limits: Mapping[str, float]) -> Found:
    """The network with the best sum of ``goal`` within limits on sums, and the front against another metric."""
    tables = {name: signed(problem, name) for name in {goal, against, *limits}}
    allowed = {name: sign(name) * (limit - problem.metrics[name].constant) for name, limit in limits.items()}
    first = assigned(tables[goal], tables, allowed)
    if first is None:
        none = np.empty((0, len(problem.choices)), np.int64)
        return Found(best=none, front=none, num_evaluated=1, is_proven=True)
    bound = sign(goal) * first.bound + problem.metrics[goal].constant
    others = [x.choice for x in _along(tables, goal, against, allowed) if x is not None]
    front = np.array([first.choice, *others])
    return Found(
        best=first.choice[None],
        front=pareto(problem, goal, against, front[problem.are_within(front, limits)]),
        num_evaluated=len(front),
        bound=bound,
        is_proven=first.is_proven,
    )


def _along(
    tables: Mapping[str, Floats], goal: str, against: str, allowed: Mapping[str, float]
) -> Iterator[Assigned | None]:
    """The same program at limits on ``against`` between its least and where the goal alone ends."""
    least_other, most = assigned(tables[against], tables, allowed), assigned(tables[goal], tables, allowed)
    if least_other is None or most is None or goal == against:
        return
    table = tables[against]
    ends = (x.choice for x in (least_other, most))
    low, high = (float(table[np.arange(c.size), c].sum()) for c in ends)
    for limit in np.linspace(low, high, NUM_POINTS):
        own = min(float(limit), allowed.get(against, np.inf))
        yield assigned(tables[goal], tables, {**allowed, against: own}, FRONT_GAP_FRAC)


def signed(problem: Problem, name: str) -> Floats:
    """The table of a metric so that less is better; ScenarioError where it is no sum."""
    table = problem.metrics[name].table
    if table is None:
        raise ScenarioError(
            f"method: {name} of this space is no sum over choices; write method = enumeration or evolution."
        )
    return sign(name) * table


def by_enumeration(problem: Problem, goal: str, against: str, limits: Mapping[str, float]) -> Found:
    """Every network of the space, tried."""
    total = problem.num_networks
    if total > MAX_TRIED:
        raise ScenarioError(
            f"method: enumeration: the space has {total:.3g} networks, and at most {MAX_TRIED:,} are tried; "
            "write method = program or evolution."
        )
    retained = np.empty((0, len(problem.choices)), np.int64)
    for start in range(0, total, PART):
        places = np.arange(start, min(total, start + PART))
        networks = np.stack(np.unravel_index(places, problem.num_alternatives), axis=1).astype(np.int64)
        within = networks[problem.are_within(networks, limits)]
        retained = pareto(problem, goal, against, np.concatenate([retained, within]))
    best = best_of(problem, goal, retained)
    bound = float(problem.metrics[goal].of(best)[0]) if len(best) else None
    return Found(best=best, front=retained, num_evaluated=total, bound=bound, is_proven=True)


def pareto(problem: Problem, goal: str, against: str, networks: Networks) -> Networks:
    """The networks that no other one reaches in both metrics, the least of ``against`` first."""
    if not len(networks):
        return networks
    return networks[least(np.stack([problem.cost(against, networks), problem.cost(goal, networks)], axis=1))]


def best_of(problem: Problem, goal: str, networks: Networks) -> Networks:
    """The one with the best goal, as one line; none of none."""
    return networks[[int(problem.cost(goal, networks).argmin())]] if len(networks) else networks
