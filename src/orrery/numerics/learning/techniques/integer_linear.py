"""Integers with a scale for each block: the codes may or may not include the lowest one, -2^(b-1).

    q = clip(round(x / s), -2^(b-1) [+ 1], 2^(b-1) - 1),   s = max |x| / (2^(b-1) - 1)

In exact arithmetic the extra code is never reached. Where ``s`` and ``x / s`` are computed in 16 bits, the quotient of
a block's largest element is often rounded up: if negative it becomes -2^(b-1), if positive it is clipped, so values
shift towards minus infinity. Leaving the code out makes both ends alike. [chen-2025-int-vs-fp, on symmetric clipping]
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.learning.casts import cast_to
from orrery.numerics.learning.linear import Array, Linear, Product, ThreeProducts


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerKnobs:
    """Width, block, whether the lowest code is left out, and the format in which scales and quotients are computed."""

    bits: int = 8
    block_elements: int = 32
    is_symmetric: bool = True
    arithmetic: str = "bf16"

    def __post_init__(self) -> None:
        check_range(self, "bits", 2, 16)
        check_range(self, "block_elements", 1, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerCast:
    """The cast of one operand."""

    knobs: IntegerKnobs

    def __call__(self, a: Array, rng: np.random.Generator) -> Array:
        """Every block of the last axis on its integers, and back."""
        knobs, computed = self.knobs, cast_to(self.knobs.arithmetic)
        most = 2.0 ** (knobs.bits - 1) - 1.0
        blocks = a.reshape(*a.shape[:-1], -1, knobs.block_elements)
        scale = computed(np.abs(blocks).max(axis=-1, keepdims=True) / most, rng)
        quotient = computed(blocks / np.where(scale > 0.0, scale, 1.0), rng)
        codes = np.clip(np.rint(quotient), -most if knobs.is_symmetric else -most - 1.0, most)
        return (codes * scale).reshape(a.shape).astype(a.dtype)


def rule(knobs: IntegerKnobs) -> Linear:
    """Three products of integers."""
    cast = IntegerCast(knobs=knobs)
    product = Product(left=cast, right=cast)
    return ThreeProducts(output=product, input_gradient=product, weight_gradient=product)


TECHNIQUE = Technique(
    name="integer-linear",
    extension_point="numerics.linear",
    rule=rule,
    knobs=IntegerKnobs,
    gains="Integer products, which are small and cheap in silicon, with even steps that suit narrow blocks.",
    costs="Elements that are small beside their block are lost; with the lowest code, values shift downwards.",
    claims=("chen-2025-int-vs-fp",),
    command="orrery experiment symmetric-clipping",
)
