"""Training by gradients: Adam on mini-batches, and the parameters that did best on rows set aside."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.numerics.adam import Adam
from orrery.predictors.learn.extra import learning_package
from orrery.predictors.learn.network import Array, Parameters

Loss = Callable[..., Any]
"""Function of the parameters and of rows of every array of the data; returns one number, in autograd's NumPy."""

MIN_SPLIT = 100
"""Fewer rows are all trained on, and judge the run too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Training plan; the rate falls along a cosine to a fiftieth."""

    steps: int
    batch: int = 256
    learning_rate: float = 3e-3
    validation_frac: float = 0.1  # of the rows, set aside
    check_steps: int = 50  # from one look at them to the next
    patience_checks: int = 10  # looks without a better loss, after which the run ends
    seed: int = 0

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        return self.learning_rate * (0.51 + 0.49 * float(np.cos(np.pi * step / self.steps)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """The best parameters met, their loss on the rows set aside, and how many steps the run took."""

    parameters: dict[str, Array]
    validation_loss: float
    num_steps: int


class Descent:
    """Parameters on their way down: an Adam for each array."""

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = dict(parameters)
        self._adams = {name: Adam(rate=0.0) for name in parameters}

    def step(self, gradients: Parameters, rate: float) -> None:
        """One step of that rate along the gradients."""
        for name, gradient in gradients.items():
            self._adams[name].rate = rate
            update = self._adams[name].step(gradient.astype(np.float64))
            self.parameters[name] = (self.parameters[name] - update).astype(np.float32)


def value_and_gradients(loss: Loss) -> Callable[..., tuple[Any, dict[str, Any]]]:
    """``loss`` with its gradient by its first argument, a mapping of arrays."""
    return learning_package("autograd").value_and_grad(loss)


def train(
    loss: Loss,
    start: Parameters,
    data: tuple[NDArray[Any], ...],
    plan: Plan,
    on_step: Callable[[], None] = lambda: None,
) -> Trained:
    """Least ``loss`` over the rows of ``data``, arrays of one length; ``on_step`` is called ``plan.steps`` times."""
    rng = np.random.default_rng([plan.seed, 11])
    order = rng.permutation(len(data[0]))
    num_validation = round(plan.validation_frac * order.size) if order.size >= MIN_SPLIT else 0
    seen = tuple(a[order[num_validation:]] for a in data)
    retained = tuple(a[order[:num_validation]] for a in data) if num_validation else seen
    down, slope = Descent(start), value_and_gradients(loss)
    best = Trained(parameters=down.parameters, validation_loss=float("inf"), num_steps=0)
    since, step = 0, 0
    while step < plan.steps and since < plan.patience_checks:
        rows = rng.integers(len(seen[0]), size=plan.batch)
        _, gradients = slope(down.parameters, *(a[rows] for a in seen))
        down.step(gradients, plan.rate(step))
        step += 1
        on_step()
        if step % plan.check_steps == 0 or step == plan.steps:
            value, since = float(loss(down.parameters, *retained)), since + 1
            if value < best.validation_loss:
                best, since = Trained(parameters=dict(down.parameters), validation_loss=value, num_steps=step), 0
    for _ in range(step, plan.steps):
        on_step()
    return best
