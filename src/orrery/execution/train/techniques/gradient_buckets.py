"""Gradients in buckets: each bucket is summed as soon as its last gradient is there."""

from orrery.base.technique import Technique
from orrery.execution.train.gradient_sum import Floats, GradientSum


def rule(found: GradientSum, knobs: Floats) -> Floats:
    """Seconds that the pass does not hide, and at least the last bucket's. [li-2020]"""
    return found.exposed_s(found.last_bucket_frac)


TECHNIQUE = Technique(
    name="gradient-buckets",
    extension_point="execution.gradient_overlap",
    rule=rule,
    gains="Sums hide behind the rest of the backward pass, all but the last bucket's.",
    costs="Products run slower beside them; with large buckets much is left when the pass is over.",
    claims=("li-2020",),
)
