"""Training sets of regressors, and trained networks: the shape of rules that map arrays to arrays."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_above, check_range
from orrery.predictors.learn.train import Loss, Plan, train

Predict = Callable[[NDArray[Any]], NDArray[Any]]
OnStep = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSet:
    """Inputs and targets, a row a sample, both scaled; how long to learn, and the seed of first weights and batches."""

    inputs: NDArray[np.float32]
    targets: NDArray[np.float32]
    steps: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescentKnobs:
    """Widths of a network, and how it is trained."""

    width: int = 16  # of tokens, or of a state
    hidden: int = 64
    batch: int = 128
    learning_rate: float = 5e-3

    def __post_init__(self) -> None:
        check_range(self, "width", 1, 1024)
        check_range(self, "hidden", 1, 4096)
        check_range(self, "batch", 1, 65536)
        check_above(self, "learning_rate", 0.0)


def descend(network: Any, loss: Loss, lesson: TrainingSet, knobs: DescentKnobs, on_step: OnStep) -> Predict:
    """The outputs of ``network`` after training; ``loss`` is of outputs and targets."""

    def of_parameters(parameters: Any, x: Any, y: Any) -> Any:
        return loss(network(parameters, x), y)

    start = network.start(np.random.default_rng([lesson.seed, 22]))
    plan = Plan(steps=lesson.steps, batch=knobs.batch, learning_rate=knobs.learning_rate, seed=lesson.seed)
    trained = train(of_parameters, start, (lesson.inputs, lesson.targets), plan, on_step)
    return lambda x: np.asarray(network(trained.parameters, x))


def straight_line(lesson: TrainingSet, ridge: float) -> Predict:
    """Weights and a constant by ridge regression: (X^T X + ridge) w = X^T y. [hoerl-1970]"""

    def with_one(rows: NDArray[Any]) -> NDArray[Any]:
        return np.hstack([rows, np.ones((len(rows), 1))]).astype(np.float64)

    rows = with_one(lesson.inputs)
    weights = np.linalg.solve(rows.T @ rows + ridge * np.eye(rows.shape[1]), rows.T @ lesson.targets)
    return lambda others: with_one(others) @ weights
