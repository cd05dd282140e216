"""Differentiable search: every choice a softmax over its alternatives, moved along the gradient of an objective.

At the end each choice takes its likeliest alternative. [liu-2019-darts]
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from orrery.predictors.cells.space import Cells, Space
from orrery.predictors.learn.extra import learning_package
from orrery.predictors.learn.network import Parameters
from orrery.predictors.learn.train import Descent, value_and_gradients

RATE = 0.1
START = 0.01
"""Standard deviation of the first logits."""


def relaxed(space: Space, logits: Parameters) -> Any:
    """Lines between those of networks: every choice's alternatives by their probabilities."""
    anp = learning_package("autograd.numpy")
    columns: dict[int, Any] = {}
    for choice, first in enumerate(space.first_column):
        rising = logits[str(choice)]
        grown = anp.exp(rising - anp.max(rising, axis=1, keepdims=True))
        columns[first] = columns.get(first, 0.0) + grown / anp.sum(grown, axis=1, keepdims=True)
    return anp.concatenate([columns[first] for first in sorted(columns)], axis=1)


def search(
    space: Space,
    loss: Callable[[Any], Any],
    num_runs: int,
    steps: int,
    rng: np.random.Generator,
    on_step: Callable[[], None],
) -> Cells:
    """The network that every run ends with; ``loss`` takes a line a run and gives a number a run."""
    logits = {
        str(i): (START * rng.standard_normal((num_runs, count))).astype(np.float32)
        for i, count in enumerate(space.num_alternatives)
    }

    def total(now: Parameters) -> Any:
        return loss(relaxed(space, now)).sum()

    down, slope = Descent(logits), value_and_gradients(total)
    for _ in range(steps):
        down.step(slope(down.parameters)[1], RATE)
        on_step()
    return np.stack([down.parameters[name].argmax(axis=1) for name in logits], axis=1)
