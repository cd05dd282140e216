"""Encoded perceptron: a network's choices as one line of counts, and a small perceptron for the log of its latency.

The line may hold anything between 0 and 2, so that the answer has a gradient where a search relaxes its choices.
[xu-2020-latency-aware-nas]
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.predictors.cells.latency import Floats
from orrery.predictors.cells.learned import Fit, OnStep, Samples
from orrery.predictors.cells.space import Cells, Space
from orrery.predictors.learn.network import Parameters, Perceptron
from orrery.predictors.learn.train import Plan, train


@dataclass(frozen=True, slots=True, kw_only=True)
class PerceptronKnobs:
    """Size of the two hidden layers, and how they are trained."""

    hidden: int = 64
    steps: int = 1000
    batch: int = 256
    learning_rate: float = 3e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, "hidden", 1, 4096)
        check_range(self, "steps", 1, 1_000_000)
        check_range(self, "batch", 1, 65536)
        check_above(self, "learning_rate", 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPerceptron:
    """A trained one; its output is (log latency - mean) / spread."""

    space: Space
    network: Perceptron
    parameters: Parameters
    log_mean_ratio: float
    log_spread_ratio: float

    def log_latency(self, lines: Any) -> Any:
        """Logarithm of the latency (in s) of encoded networks, or of relaxed ones; differentiable."""
        return self.network(self.parameters, lines)[:, 0] * self.log_spread_ratio + self.log_mean_ratio

    def __call__(self, cells: Cells) -> Floats:
        """Seconds."""
        return np.exp(self.log_latency(self.space.encode(cells)).astype(np.float64))


def fit_perceptron(samples: Samples, knobs: PerceptronKnobs, on_step: OnStep) -> EncodedPerceptron:
    """Trained on the squared error of the logarithm."""
    space = samples.plan.space
    network = Perceptron(widths=(space.num_columns, knobs.hidden, knobs.hidden, 1))
    targets = np.log(samples.latency_s)
    mean, spread = float(targets.mean()), float(targets.std()) or 1.0

    def loss(parameters: Any, lines: Any, y: Any) -> Any:
        return ((network(parameters, lines)[:, 0] - y) ** 2).mean()

    start = network.start(np.random.default_rng([knobs.seed, 21]))
    plan = Plan(steps=knobs.steps, batch=knobs.batch, learning_rate=knobs.learning_rate, seed=knobs.seed)
    data = (space.encode(samples.cells), ((targets - mean) / spread).astype(np.float32))
    trained = train(loss, start, data, plan, on_step)
    return EncodedPerceptron(
        space=space, network=network, parameters=trained.parameters, log_mean_ratio=mean, log_spread_ratio=spread
    )


def rule(knobs: PerceptronKnobs, on_step: OnStep) -> Fit:
    """Return the fit, unprepared; every machine is learned from the start."""
    return lambda samples: fit_perceptron(samples, knobs, on_step)


TECHNIQUE = Technique(
    name="encoded-perceptron",
    extension_point="predictors.cell-latency",
    rule=rule,
    knobs=PerceptronKnobs,
    gains="Learns what operations cost beside each other, and has a gradient that a search can follow.",
    costs="Thousands of timed networks for every machine; with few it is behind a straight line.",
    claims=("xu-2020-latency-aware-nas",),
)
