"""Gated recurrence: metrics are read second by second into a state, and quantiles come out of the last. [cho-2014]"""

import numpy as np

from orrery.base.technique import Technique
from orrery.predictors.learn.quantiles import QUANTILES, ordered, ordered_pinball
from orrery.predictors.learn.recurrent import Recurrent
from orrery.predictors.learn.training_set import OnStep, Predict, TrainingSet, descend
from orrery.predictors.tenants.techniques.dual_branch_attention import CounterKnobs


def rule(knobs: CounterKnobs, lesson: TrainingSet, on_step: OnStep) -> Predict:
    """The trained network."""
    network = Recurrent(
        num_metrics=lesson.inputs.shape[2], width=knobs.width, hidden=knobs.hidden, num_outputs=len(QUANTILES)
    )
    fitted = descend(network, ordered_pinball, lesson, knobs, on_step)
    return lambda runs: np.asarray(ordered(fitted(runs)))


TECHNIQUE = Technique(
    name="gated-recurrence",
    extension_point="predictors.slowdown",
    rule=rule,
    knobs=CounterKnobs,
    gains="Few weights, and it may stop at any second.",
    costs="One second after the other, and what was early fades.",
    claims=("cho-2014",),
)
