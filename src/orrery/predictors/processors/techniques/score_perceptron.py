"""Score perceptron: all features in one row, two hidden layers, all suites' scores. [rumelhart-1986]"""

from typing import Any

from orrery.base.technique import Technique
from orrery.predictors.learn.network import Perceptron
from orrery.predictors.learn.training_set import DescentKnobs, OnStep, Predict, TrainingSet, descend


def squared_error(outputs: Any, targets: Any) -> Any:
    """Mean over rows and suites."""
    return ((outputs - targets) ** 2).mean()


def rule(knobs: DescentKnobs, lesson: TrainingSet, on_step: OnStep) -> Predict:
    """The trained network; it has no tokens, so ``width`` says nothing here."""
    inputs, outputs = lesson.inputs.shape[1], lesson.targets.shape[1]
    network = Perceptron(widths=(inputs, knobs.hidden, knobs.hidden, outputs))
    return descend(network, squared_error, lesson, knobs, on_step)


TECHNIQUE = Technique(
    name="score-perceptron",
    extension_point="predictors.machine-score",
    rule=rule,
    knobs=DescentKnobs,
    gains="Bends where a roof takes over from another.",
    costs="Must learn from examples what belongs together, and what a missing feature means.",
    claims=("rumelhart-1986",),
)
