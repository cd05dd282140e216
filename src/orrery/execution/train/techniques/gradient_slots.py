"""Gradient slots: gradients are cut to fit where the links between nodes idle.

A layer keeps those links busy for its exchange of tokens and leaves them idle while experts compute and links inside
nodes gather. Cut finely enough, the sum of gradients fills that time; the last layer's gradients alone find none.
"""

from orrery.base.technique import Technique
from orrery.execution.train.gradient_sum import Floats, GradientSum


def rule(found: GradientSum, knobs: Floats) -> Floats:
    """Seconds that idle links do not take, and at least the last layer's part. [fsmoe-2025]"""
    return found.exposed_s(found.last_layer_frac)


TECHNIQUE = Technique(
    name="gradient-slots",
    extension_point="execution.gradient_overlap",
    rule=rule,
    gains="Sums take the links only where no exchange of tokens wants them, so that no layer waits for them.",
    costs="Products run slower beside them, and the last layer's gradients are still waited for.",
    claims=("fsmoe-2025",),
)
