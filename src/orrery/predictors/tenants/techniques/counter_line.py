"""Counter line: the speed as a weighted sum of every metric's mean and deviation over the run. [hoerl-1970]"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.predictors.learn.quantiles import QUANTILES
from orrery.predictors.learn.training_set import OnStep, Predict, TrainingSet, straight_line


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterLineKnobs:
    """Strength of the pull of weights to zero, for each run that is learnt from."""

    ridge: float = 0.02

    def __post_init__(self) -> None:
        check_above(self, "ridge", 0.0)


def rule(knobs: CounterLineKnobs, lesson: TrainingSet, on_step: OnStep) -> Predict:
    """One solve; quantiles are those of its own residuals around it."""
    line = straight_line(replace(lesson, inputs=_summary(lesson.inputs)), knobs.ridge * len(lesson.inputs))
    off: NDArray[Any] = np.quantile(lesson.targets - line(_summary(lesson.inputs)), np.array(QUANTILES))
    off[1] = 0.0
    return lambda runs: line(_summary(runs))[:, None] + off


def _summary(runs: NDArray[Any]) -> NDArray[Any]:
    return np.hstack([runs.mean(axis=1), runs.std(axis=1)])


TECHNIQUE = Technique(
    name="counter-line",
    extension_point="predictors.slowdown",
    rule=rule,
    knobs=CounterLineKnobs,
    gains="One solve, and weights that can be read.",
    costs="A pair of metrics that matters only together is invisible.",
    claims=("hoerl-1970",),
)
