"""NVFP4 pre-training: four-bit products whose gradients are unbiased and whose weights are the same both ways.

Inputs and gradients have a scale for 16 elements along the summed axis, weights one for a square of 16 x 16, so that
``w`` and its transpose round to the same values. Gradients are rounded stochastically, all else to nearest. Only the
operands of the weight gradient pass a random Hadamard rotation, over 16 tokens. Some layers stay in 16 bits, which is
the network's business. [nvidia-2025-nvfp4-pretraining, sections 3 and 4; the cases of each product are listed in
pytorch/ao issue 3293]
"""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.numerics.learning.casts import cast_to, random_hadamard
from orrery.numerics.learning.linear import Linear, Product, ThreeProducts
from orrery.numerics.rounding import Rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvfp4Knobs:
    """Each part of the recipe, so that it can be left out."""

    inputs: str = "nvfp4"
    weights: str = "e2m1/16x16:e4m3fn/tensor"
    gradients: str = "nvfp4"
    hadamard_elements: int = 16
    gradient_rounding: Rounding = Rounding.STOCHASTIC


def rule(knobs: Nvfp4Knobs) -> Linear:
    """The three products as the recipe casts them."""
    inputs, weights = cast_to(knobs.inputs), cast_to(knobs.weights)
    gradients = cast_to(knobs.gradients, knobs.gradient_rounding)
    return ThreeProducts(
        output=Product(left=inputs, right=weights),
        input_gradient=Product(left=gradients, right=weights),
        weight_gradient=Product(left=gradients, right=inputs, mix=random_hadamard(knobs.hadamard_elements)),
    )


TECHNIQUE = Technique(
    name="nvfp4-linear",
    extension_point="numerics.linear",
    rule=rule,
    knobs=Nvfp4Knobs,
    gains="All three products at the four-bit rate, with gradients that are right on average.",
    costs="Noise of stochastic rounding, a rotation before the weight gradient, and layers that must stay in 16 bits.",
    claims=("nvidia-2025-nvfp4-pretraining",),
)
