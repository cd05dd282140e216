"""A search by policy gradient: every choice draws its alternative, and what came out well is drawn more often.

    reward = - log(floor + share of what can be lost that is lost) - weight x sum over limits of |metric / limit - 1|
    logits += rate (reward - mean of late) x (drawn - probabilities)

One run, no assignment is solved for; the end is every choice's likeliest alternative. Dotzel et al., FLIQS (arXiv
2308.03290), whose reward is the accuracy of one training run and which fines costs on either side of a target; passing
a limit weighs twice here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from orrery.planner.architecture.exact import Found, best_of, pareto, signed
from orrery.planner.architecture.gradient import drawn_from, shares_of
from orrery.planner.architecture.problem import Floats, Networks, Problem, sign

KEPT_FRAC = 0.9
"""Share of the running mean of rewards that is kept at each step."""

FLOOR_FRAC = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyKnobs:
    """Settings of a run; draws of one step share a baseline."""

    steps: int = 300
    draws: int = 64
    step_ratio: float = 0.3  # of a step along the gradient
    cost_weight_ratio: float = 20.0
    seed: int = 0


class Policy:
    """Probabilities of every choice's alternatives that follow rewards."""

    def __init__(self, num_alternatives: tuple[int, ...], step_ratio: float, rng: np.random.Generator) -> None:
        width = max(num_alternatives)
        is_there = np.arange(width) < np.array(num_alternatives)[:, None]
        self.logits: Floats = np.where(is_there, 0.0, -np.inf)
        self._step_ratio, self._rng, self._late = step_ratio, rng, np.nan

    def draw(self, count: int) -> Networks:
        """Draw networks."""
        return drawn_from(shares_of(self.logits), count, self._rng)

    def learn(self, drawn: Networks, reward: Floats) -> None:
        """Make likelier what was rewarded above the running mean."""
        mean = float(reward.mean())
        self._late = mean if np.isnan(self._late) else KEPT_FRAC * self._late + (1.0 - KEPT_FRAC) * mean
        gain = (reward - self._late) / (float(reward.std()) or 1.0)
        taken = np.eye(self.logits.shape[1])[drawn] - shares_of(self.logits)
        self.logits = self.logits + self._step_ratio * np.tensordot(gain, taken, axes=1) / len(drawn)

    @property
    def likeliest(self) -> Networks:
        """The likeliest alternative of every choice, as one line."""
        return self.logits.argmax(axis=1)[None]


def by_policy(problem: Problem, goal: str, against: str, limits: Mapping[str, float], knobs: PolicyKnobs) -> Found:
    """The likeliest network of a run, or else the best of the second half of its draws within the limits."""
    policy = Policy(problem.num_alternatives, knobs.step_ratio, np.random.default_rng(knobs.seed))
    table = signed(problem, goal)
    low = float(np.nanmin(table, axis=1).sum()) + sign(goal) * problem.metrics[goal].constant
    span = float((np.nanmax(table, axis=1) - np.nanmin(table, axis=1)).sum()) or 1.0
    drawn, late = policy.draw(knobs.draws), list[Networks]()
    for step in range(knobs.steps):
        lost = (problem.cost(goal, drawn) - low) / span
        policy.learn(drawn, -np.log(FLOOR_FRAC + np.maximum(lost, 0.0)) - fines(problem, drawn, limits, knobs))
        drawn = policy.draw(knobs.draws)
        if 2 * step >= knobs.steps:
            late.append(drawn)
    ends = policy.likeliest
    if not problem.are_within(ends, limits).all():
        ends = np.concatenate([drawn, *late])
        ends = ends[problem.are_within(ends, limits)]
    return Found(
        best=best_of(problem, goal, ends),
        front=pareto(problem, goal, against, ends),
        num_evaluated=knobs.steps * knobs.draws,
    )


def fines(problem: Problem, drawn: Networks, limits: Mapping[str, float], knobs: PolicyKnobs) -> Floats:
    """Penalties of drawn networks for their distance from the limits: an excess counts twice as much as a shortfall."""
    off = [
        np.abs(x) * np.where(x > 0.0, 2.0, 1.0)
        for name, limit in limits.items()
        if limit
        for x in [sign(name) * (problem.metrics[name].of(drawn) - limit) / abs(limit)]
    ]
    return knobs.cost_weight_ratio * np.sum([np.zeros(len(drawn)), *off], axis=0)
