"""Evolution of networks towards two metrics, within limits, with a first generation that may be filtered by size.

Each generation keeps the half that fewest others beat in both, crosses pairs of them choice by choice, and draws one
choice in so many anew. A filter draws networks of the first generation again until all are small enough, before any of
them is trained; what is bred from small networks tends to stay small [termritthikun-2021-eeea-net].
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.planner.architecture.exact import Found, best_of, pareto
from orrery.planner.architecture.problem import Floats, Networks, Problem

PARAMETERS = "parameters"
MAX_DRAWS = 200
"""Rounds of drawing after which a limit counts as too small for the space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolutionKnobs:
    """Networks of a generation, generations, and the most parameters in the first one (infinite: no filter)."""

    population: int = 40
    generations: int = 30
    first_parameters: float = inf
    seed: int = 0


def by_evolution(
    problem: Problem, goal: str, against: str, limits: Mapping[str, float], knobs: EvolutionKnobs
) -> Found:
    """The best of everything that a run evaluates."""
    evaluated = generations(problem, (goal, against), limits, knobs)
    within = evaluated[problem.are_within(evaluated, limits)]
    return Found(
        best=best_of(problem, goal, within),
        front=pareto(problem, goal, against, within),
        num_evaluated=len(evaluated),
        evaluated=evaluated,
    )


def first_generation(problem: Problem, knobs: EvolutionKnobs, rng: np.random.Generator) -> Networks:
    """Draw a generation within the filter; OutOfRange where the space hardly has any such network."""
    networks = problem.draw(knobs.population, rng)
    if knobs.first_parameters == inf:
        return networks
    for _ in range(MAX_DRAWS):
        too_large = problem.metrics[PARAMETERS].of(networks) > knobs.first_parameters
        if not too_large.any():
            return networks
        networks[too_large] = problem.draw(int(too_large.sum()), rng)
    raise OutOfRange(
        f"{PARAMETERS}: hardly any network of the space is below {knobs.first_parameters:g}; write a higher limit."
    )


def generations(
    problem: Problem, names: tuple[str, str], limits: Mapping[str, float], knobs: EvolutionKnobs
) -> Networks:
    """Every network that is evaluated, in order, the first generation included."""
    rng = np.random.default_rng([knobs.seed, 71])
    now = first_generation(problem, knobs, rng)
    costs = _costs(problem, names, limits, now)
    evaluated = [now]
    for _ in range(knobs.generations - 1):
        children = _bred(problem, now[_ranked(costs)[: max(1, knobs.population // 2)]], knobs.population, rng)
        evaluated.append(children)
        both = np.concatenate([now, children])
        costs = np.concatenate([costs, _costs(problem, names, limits, children)])
        retained = _ranked(costs)[: knobs.population]
        now, costs = both[retained], costs[retained]
    return np.concatenate(evaluated)


def _costs(problem: Problem, names: tuple[str, str], limits: Mapping[str, float], networks: Networks) -> Floats:
    """Both metrics, less is better; whatever passes a limit comes behind everything that does not."""
    outside = ~problem.are_within(networks, limits)
    found = np.stack([problem.cost(name, networks) for name in names], axis=1)
    return np.column_stack([found, outside.astype(np.float64)])


def _ranked(costs: Floats) -> np.ndarray:
    """Indices, first those within the limits that fewest others beat; of equals the better in the goal."""
    a, b = costs[:, 0], costs[:, 1]
    beats = (a[:, None] >= a) & (b[:, None] >= b) & ((a[:, None] > a) | (b[:, None] > b))
    return np.lexsort((a, beats.sum(axis=1), costs[:, 2]))


def _bred(problem: Problem, parents: Networks, count: int, rng: np.random.Generator) -> Networks:
    """Pairs crossed choice by choice, and one choice of a network drawn anew on average."""
    pairs = rng.integers(len(parents), size=(2, count))
    children = np.where(rng.random((count, parents.shape[1])) < 0.5, parents[pairs[0]], parents[pairs[1]])
    is_drawn = rng.random(children.shape) < 1.0 / parents.shape[1]
    return np.where(is_drawn, problem.draw(count, rng), children)
