"""Gradients after the pass: ranks sum them when the last micro-batch's backward pass is over."""

from orrery.base.technique import Technique
from orrery.execution.train.gradient_sum import Floats, GradientSum


def rule(found: GradientSum, knobs: Floats) -> Floats:
    """All of the sum. [shoeybi-2019]"""
    return found.reduce_s


TECHNIQUE = Technique(
    name="gradient-serial",
    extension_point="execution.gradient_overlap",
    rule=rule,
    gains="One message of all gradients, which no product is slowed by.",
    costs="All of the sum's time.",
    claims=("shoeybi-2019",),
)
