"""Grouped attention: features attend to each other within their subsystem, then subsystems to each other.

Each feature is a token, known or missing; a group becomes the mean of its tokens; a perceptron reads all groups and
gives all suites' scores at once. [ncpp-perfcastdb]
"""

from orrery.base.technique import Technique
from orrery.predictors.learn.attention import GroupedAttention
from orrery.predictors.learn.training_set import DescentKnobs, OnStep, Predict, TrainingSet, descend
from orrery.predictors.processors.scored import GROUP_OF
from orrery.predictors.processors.techniques.score_perceptron import squared_error


def rule(knobs: DescentKnobs, lesson: TrainingSet, on_step: OnStep) -> Predict:
    """The trained network."""
    network = GroupedAttention(
        groups=GROUP_OF, width=knobs.width, hidden=knobs.hidden, num_outputs=lesson.targets.shape[1]
    )
    return descend(network, squared_error, lesson, knobs, on_step)


TECHNIQUE = Technique(
    name="grouped-attention",
    extension_point="predictors.machine-score",
    rule=rule,
    knobs=DescentKnobs,
    gains="Learns which features stand in for a missing one, and what one subsystem does to another.",
    costs="Ten times the time of a perceptron to train.",
    claims=("ncpp-perfcastdb",),
)
