"""A search by policy gradient: every layer draws its format, and what came out well is drawn more often.

    reward = - log(perturbation / that of the widest) - weight |cost / target - 1|
    logits += rate (reward - mean of late) x (drawn - probabilities)

One run, no assignment is solved for; the end is every layer's likeliest format. Dotzel et al., FLIQS (arXiv
2308.03290), whose reward is the accuracy of one training run and whose cost is a model's operations by width.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.planner.bits.options import Options
from orrery.planner.bits.solve import Assignment

Floats = NDArray[np.float64]

KEPT_FRAC = 0.9
"""Share of the running mean of rewards that is kept at each step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyKnobs:
    """How a run goes; draws of one step share a baseline."""

    steps: int = 300
    draws: int = 64
    step_ratio: float = 0.3  # of a step along the gradient
    cost_weight_ratio: float = 20.0
    seed: int = 0


def searched(options: Options, metric: str, target: float, knobs: PolicyKnobs) -> Assignment:
    """The likeliest format of every layer after a run towards that cost."""
    rng = np.random.default_rng(knobs.seed)
    cost, harm = options.cost(metric), options.perturbation_ratio
    widest = float(harm[:, int(np.argmin(options.perturbation_ratio.sum(axis=0)))].sum())
    logits, late = np.zeros(cost.shape), 0.0
    rows = np.arange(len(cost))
    for step in range(knobs.steps):
        shares = _shares(logits)
        drawn = (rng.random((knobs.draws, len(cost), 1)) > np.cumsum(shares, axis=1)).sum(axis=2)
        drawn = np.minimum(drawn, cost.shape[1] - 1)
        harms, costs = harm[rows, drawn].sum(axis=1), cost[rows, drawn].sum(axis=1)
        reward = -np.log(harms / widest) - knobs.cost_weight_ratio * np.abs(costs / target - 1.0)
        late = float(reward.mean()) if step == 0 else KEPT_FRAC * late + (1.0 - KEPT_FRAC) * float(reward.mean())
        gain = (reward - late) / (float(reward.std()) or 1.0)
        taken = np.eye(cost.shape[1])[drawn] - shares
        logits += knobs.step_ratio * np.tensordot(gain, taken, axes=1) / knobs.draws
    return Assignment(options=options, choice=logits.argmax(axis=1), is_proven=False)


def _shares(logits: Floats) -> Floats:
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))
