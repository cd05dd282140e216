"""Dual-branch attention: seconds attend to seconds, metrics to metrics, and quantiles come out. [cloudformer]"""

from dataclasses import dataclass

import numpy as np

from orrery.base.technique import Technique
from orrery.predictors.learn.attention import DualBranch
from orrery.predictors.learn.quantiles import QUANTILES, ordered, ordered_pinball
from orrery.predictors.learn.training_set import DescentKnobs, OnStep, Predict, TrainingSet, descend


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterKnobs(DescentKnobs):
    """Smaller batches and widths than for features of a machine: a run is a hundred times as long."""

    width: int = 12
    hidden: int = 32
    batch: int = 32
    learning_rate: float = 4e-3


def rule(knobs: CounterKnobs, lesson: TrainingSet, on_step: OnStep) -> Predict:
    """The trained network."""
    _, seconds, metrics = lesson.inputs.shape
    network = DualBranch(
        num_seconds=seconds, num_metrics=metrics, width=knobs.width, hidden=knobs.hidden, num_outputs=len(QUANTILES)
    )
    fitted = descend(network, ordered_pinball, lesson, knobs, on_step)
    return lambda runs: np.asarray(ordered(fitted(runs)))


TECHNIQUE = Technique(
    name="dual-branch-attention",
    extension_point="predictors.slowdown",
    rule=rule,
    knobs=CounterKnobs,
    gains="Sees every pair of metrics and every pair of seconds.",
    costs="Work that grows with the square of the metrics.",
    claims=("cloudformer",),
)
