"""Operations added by stabilisers of a narrow format, for each element of an operand, beyond the plain cast.

    rotation over n elements     log2(n) additions by the fast transform, and one change of sign
    stochastic rounding          one addition, and its random bits
    scale of the whole tensor    one comparison: the maximum is a pass of its own; it multiplies scales of blocks only
    slope of weights             a subtraction, a power (two: logarithm and exponential), a comparison, two products

Random bits: Philox-4x32-10 draws 128 bits in ten rounds of two wide products (two operations each), four exclusive ors
and two additions of keys [salmon-2011]; eight bits decide an element, as in the conversion instruction of Blackwell.
"""

import math

from orrery.numerics.learning.techniques.rounded_linear import RoundedKnobs
from orrery.numerics.parse import parse_format
from orrery.numerics.rounding import Rounding

PHILOX_OPERATIONS, PHILOX_BITS = 100.0, 128.0
BITS_PER_DRAW = 8.0
DRAW_OPERATIONS = 1.0 + PHILOX_OPERATIONS * BITS_PER_DRAW / PHILOX_BITS
SLOPE_OPERATIONS = 6.0

OPERANDS = 6
"""Two of each of the three products."""


def extra_operations(knobs: RoundedKnobs) -> dict[str, float]:
    """By stabiliser, the mean over the six operands of a layer's three products."""
    formats = (knobs.inputs, knobs.weights, knobs.gradients)
    scaled = sum(2 for word in formats if len(parse_format(word).scaling.levels) == 2)
    drawn = 2 * (knobs.gradient_rounding is Rounding.STOCHASTIC) + 4 * (knobs.rounding is Rounding.STOCHASTIC)
    return {
        "rotation": math.log2(knobs.hadamard_elements) + 1.0 if knobs.hadamard_elements else 0.0,
        "stochastic_rounding": drawn * DRAW_OPERATIONS / OPERANDS,
        "tensor_scale": scaled / OPERANDS,
        "slope": SLOPE_OPERATIONS / OPERANDS if knobs.slope_order else 0.0,
    }
