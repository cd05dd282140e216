"""Shiftmax of I-ViT: softmax by shifts and adds, with a straight line for the fractional power of two.

Li and Gu 2023, "I-ViT: Integer-only Quantization for Efficient Vision Transformer Inference", section 3.3.
"""

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.exponential import shift_exp
from orrery.numerics.arithmetic.integer import ExpKnobs
from orrery.numerics.arithmetic.integer_softmax import integer_softmax


def rule(x: Array, step_ratio: float, knobs: ExpKnobs) -> Computed:
    """3 N codes read, N written."""
    return integer_softmax(x, step_ratio, knobs, shift_exp)


TECHNIQUE = Technique(
    name="shiftmax",
    extension_point="numerics.softmax",
    rule=rule,
    knobs=ExpKnobs,
    gains="An exponential takes shifts and adds alone.",
    costs="The straight line is up to 6 % above the power of two, and log2 e is taken as 1.4375.",
    claims=("i-vit",),
)
