"""Exact: every product of the operands as they are; what all others are compared with."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.learning.linear import Linear, ThreeProducts


def rule(knobs: NoKnobs) -> Linear:
    """Compute all three products without rounding."""
    return ThreeProducts()


TECHNIQUE = Technique(
    name="exact-linear",
    extension_point="numerics.linear",
    rule=rule,
    gains="No error of any format; the baseline of every comparison.",
    costs="Every operand in 32 bits, at the slowest rate that a device has.",
    claims=("micikevicius-2018",),
)
