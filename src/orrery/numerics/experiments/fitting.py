"""Training a small network under a rule for its products, and what came of it."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from orrery.numerics.adam import Adam
from orrery.numerics.experiments.losses import Targets
from orrery.numerics.experiments.networks import Network, start
from orrery.numerics.experiments.steps import Pass, RuleOf
from orrery.numerics.experiments.tasks import Loss, Task
from orrery.numerics.learning.linear import Array, Linear, ThreeProducts

HELD_OUT = 512
"""Points on which a trained network is judged unless said otherwise, the same for every rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """One run: its weights at the end, and its losses."""

    weights: Mapping[str, Array]
    losses: tuple[float, ...]  # of every step's batch, before its update
    held_out_loss: float  # with the run's own products
    logits: Array  # of the held-out points
    targets: Targets

    @property
    def is_finite(self) -> bool:
        """Whether the loss stayed a number to the end."""
        return bool(np.isfinite(self.losses).all() and np.isfinite(self.held_out_loss))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Training plan: Adam with a short warm-up and a cosine to a tenth."""

    steps: int = 200
    points: int = 64  # of a batch
    learning_rate: float = 3e-3
    warmup_frac: float = 0.05
    seed: int = 0
    held_out: int = HELD_OUT  # points on which the trained network is judged

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        warm = max(1.0, self.warmup_frac * self.steps)
        falling = 0.55 + 0.45 * np.cos(np.pi * step / max(1, self.steps))
        return self.learning_rate * min(1.0, (step + 1) / warm) * float(falling)


def all_alike(rule: Linear) -> RuleOf:
    """The same rule for every layer."""
    return lambda name: rule


def but_for(rule: Linear, names: Collection[str]) -> RuleOf:
    """The rule for every layer but those, which stay exact."""
    exact = ThreeProducts()
    return lambda name: exact if name in names else rule


def loss_and_gradients(
    network: Network,
    weights: Mapping[str, Array],
    x: Array,
    targets: Targets,
    loss: Loss,
    rule_of: RuleOf,
    rng: np.random.Generator,
) -> tuple[float, dict[str, Array]]:
    """The loss of one batch, and the gradient of every weight."""
    run = Pass(weights=weights, rule_of=rule_of, rng=rng)
    y, back = network.step(run)(x)
    value, dy = loss(y, targets)
    back(dy)
    return value, run.gradients


def fit(
    network: Network,
    task: Task,
    rule_of: RuleOf,
    plan: Plan,
    *,
    begin: Mapping[str, Array] | None = None,
    judged: Task | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> Fit:
    """Train from ``begin``, or from random weights; runs with one seed see the same weights, batches and judges.

    ``judged`` has the points to judge by, where they are not drawn from the task itself. Weights are kept in 32 bits; a
    run whose loss is no number any more stops there.
    """
    batches, noise = np.random.default_rng([plan.seed, 5]), np.random.default_rng([plan.seed, 6])
    weights = dict(begin or start(network, np.random.default_rng([plan.seed, 4])))
    adams = {name: Adam(rate=plan.learning_rate) for name in weights}
    losses: list[float] = []
    with np.errstate(all="ignore"):
        for step in range(plan.steps):
            x, targets = task.draw(plan.points, batches)
            value, gradients = loss_and_gradients(network, weights, x, targets, task.loss, rule_of, noise)
            losses.append(value)
            if not np.isfinite(value):
                break
            for name, gradient in gradients.items():
                adams[name].rate = plan.rate(step)
                weights[name] = (weights[name] - adams[name].step(gradient.astype(np.float64))).astype(np.float32)
            on_step()
        logits, targets = answers(network, weights, judged or task, rule_of, plan.seed, plan.held_out)
        held_out = task.loss(logits, targets)[0]
    return Fit(weights=weights, losses=tuple(losses), held_out_loss=held_out, logits=logits, targets=targets)


def answers(
    network: Network,
    weights: Mapping[str, Array],
    task: Task,
    rule_of: RuleOf,
    seed: int,
    points: int = HELD_OUT,
) -> tuple[Array, Targets]:
    """Outputs of the network on the held-out points, and the targets."""
    x, targets = task.draw(points, np.random.default_rng([seed, 7]))
    return network.step(Pass(weights=weights, rule_of=rule_of, rng=np.random.default_rng([seed, 8])))(x)[0], targets
