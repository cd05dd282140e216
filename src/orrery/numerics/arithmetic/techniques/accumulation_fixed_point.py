"""Dynamic fixed point: 16-bit codes, 32-bit accumulators, and partial sums spilled before they can overflow."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array
from orrery.numerics.arithmetic.dynamic_fixed_point import fixed_point, product


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedPointKnobs:
    """Bits of a code, and products between spills."""

    num_bits: int = 16
    num_chained: int = 0  # 0: as many as cannot overflow

    def __post_init__(self) -> None:
        check_range(self, "num_bits", 2, 16)
        check_range(self, "num_chained", 0, 1 << 20)


def rule(x: Array, weights: Array, knobs: FixedPointKnobs) -> Array:
    """x W^T with each operand at one exponent, spilled to float32."""
    a, b = fixed_point(x, knobs.num_bits), fixed_point(weights, knobs.num_bits)
    return product(a, b, knobs.num_chained or None, np.float32).values


TECHNIQUE = Technique(
    name="dynamic-fixed-point",
    extension_point="numerics.accumulation",
    rule=rule,
    knobs=FixedPointKnobs,
    gains="Integer multiply-adds at twice the FP32 rate, with more bits than 16-bit floats keep.",
    costs="One exponent serves a whole tensor, and partial sums must be spilled every few products.",
    claims=("dfp-int16-training",),
)
