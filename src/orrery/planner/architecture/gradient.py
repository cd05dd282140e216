"""Differentiable search: every choice a softmax over its alternatives, moved along the gradient of expected metrics.

    loss = E[goal] / spread + weight x sum over limits of max(0, (E[metric] - limit) / |limit|)

with E[m] = c + sum p[u, a] m[u, a], and scores with the other sign. After every step the network of likeliest
alternatives is looked at, and one that is drawn; of all these the best within the limits counts. [liu-2019-darts];
expected latencies from a table are those of [cai-2019-proxylessnas].
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orrery.numerics.adam import Adam
from orrery.planner.architecture.exact import Found, best_of, pareto, signed
from orrery.planner.architecture.problem import Floats, Networks, Problem, sign

START = 0.01
"""Standard deviation of the first logits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientKnobs:
    """Settings of the runs: several from drawn starting points, of so many steps."""

    runs: int = 8
    steps: int = 150
    step_ratio: float = 0.1  # of a step of Adam
    limit_weight_ratio: float = 10.0  # what passing a limit by its own size weighs beside the goal's spread
    seed: int = 0


def by_gradient(problem: Problem, goal: str, against: str, limits: Mapping[str, float], knobs: GradientKnobs) -> Found:
    """The best of the networks that runs pass through."""
    passed = np.concatenate([_run(problem, goal, limits, knobs, i) for i in range(knobs.runs)])
    passed = np.unique(passed, axis=0)
    within = passed[problem.are_within(passed, limits)]
    return Found(
        best=best_of(problem, goal, within),
        front=pareto(problem, goal, against, within),
        num_evaluated=len(passed),
    )


def _run(problem: Problem, goal: str, limits: Mapping[str, float], knobs: GradientKnobs, index: int) -> Networks:
    """The likeliest network after every step of one run, and one that is drawn."""
    table = signed(problem, goal)
    spread = float((np.nanmax(table, axis=1) - np.nanmin(table, axis=1)).sum()) or 1.0
    limited = {name: np.nan_to_num(signed(problem, name)) for name in limits}
    pull, is_there = np.nan_to_num(table) / spread, ~np.isnan(table)
    rng, adam = np.random.default_rng([knobs.seed, 61, index]), Adam(rate=knobs.step_ratio)
    logits = np.where(is_there, START * rng.standard_normal(table.shape), -np.inf)
    passed = np.empty((knobs.steps, 2, len(table)), np.int64)
    for step in range(knobs.steps):
        shares = shares_of(logits)
        slope = pull.copy()
        for name, limit in limits.items():
            size = abs(limit) or 1.0
            expected = sign(name) * problem.metrics[name].constant + float((shares * limited[name]).sum())
            if expected > sign(name) * limit:
                slope += knobs.limit_weight_ratio * limited[name] / size
        logits = logits - adam.step(shares * (slope - (shares * slope).sum(axis=1, keepdims=True)))
        passed[step] = logits.argmax(axis=1), drawn_from(shares, 1, rng)[0]
    return passed.reshape(-1, len(table))


def drawn_from(shares: Floats, count: int, rng: np.random.Generator) -> Networks:
    """Draw networks, every choice by its probabilities."""
    upto, last = np.cumsum(shares, axis=1), (shares > 0.0).cumsum(axis=1).argmax(axis=1)
    return np.minimum((rng.random((count, len(shares), 1)) > upto).sum(axis=2), last)


def shares_of(logits: Floats) -> Floats:
    """The probabilities of every choice's alternatives; none where a logit is minus infinity."""
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))
