"""Score line: the logarithm of a score as a weighted sum of logarithms, a product of powers. [hoerl-1970]"""

from dataclasses import dataclass

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.predictors.learn.training_set import OnStep, Predict, TrainingSet, straight_line


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreLineKnobs:
    """Strength of the pull of weights to zero."""

    ridge: float = 1.0

    def __post_init__(self) -> None:
        check_above(self, "ridge", 0.0)


def rule(knobs: ScoreLineKnobs, lesson: TrainingSet, on_step: OnStep) -> Predict:
    """One solve; no steps."""
    return straight_line(lesson, knobs.ridge)


TECHNIQUE = Technique(
    name="score-line",
    extension_point="predictors.machine-score",
    rule=rule,
    knobs=ScoreLineKnobs,
    gains="One solve, and close wherever one roof holds for all machines.",
    costs="Cannot know the lesser of two roofs, nor which feature stands in for a missing one.",
    claims=("hoerl-1970",),
)
