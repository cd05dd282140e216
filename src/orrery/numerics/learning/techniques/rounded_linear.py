"""Rounded: any format for inputs, weights and gradients, any rounding, with or without a shared Hadamard rotation.

Backward is straight-through: the gradient of ``q(x) q(w)^T`` as if q were the identity. Its products multiply either
what the forward product multiplied, or the exact operands cast again along their own summed axis, as blocks need.
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.learning.casts import cast_to, random_hadamard
from orrery.numerics.learning.linear import Array, Cast, Linear, Product, Saved, ThreeProducts
from orrery.numerics.learning.slopes import Sloped
from orrery.numerics.parse import parse_format
from orrery.numerics.rounding import Rounding


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundedKnobs:
    """A format for each kind of operand ("" leaves it exact) and how each is rounded.

    ``hadamard_elements`` rotates both operands of every product (0: none). ``is_cast_again`` makes backward products
    cast the exact operands along their own axis; otherwise they multiply what the forward product did. With
    ``slope_order`` k, weights have the gradient of a smooth curve through the steps (0: straight-through).
    """

    inputs: str = "mxfp8"
    weights: str = "mxfp8"
    gradients: str = "mxfp8"
    rounding: Rounding = Rounding.NEAREST_EVEN
    gradient_rounding: Rounding = Rounding.NEAREST_EVEN
    hadamard_elements: int = 0
    is_cast_again: bool = True
    slope_order: float = 0.0

    def __post_init__(self) -> None:
        check_range(self, "hadamard_elements", 0, 4096)
        check_range(self, "slope_order", 0.0, 100.0)
        if self.hadamard_elements and (self.slope_order or not self.is_cast_again):
            raise ScenarioError(
                "RoundedKnobs: with hadamard_elements operands are rounded in another basis; leave slope_order = 0 and "
                "is_cast_again = True."
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StraightThrough:
    """Backward multiplies what forward multiplied."""

    inputs: Cast
    weights: Cast
    gradient: Product

    def forward(self, x: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Saved]:
        """``q(x) q(w)^T``, and both operands as rounded."""
        x, w = self.inputs(x, rng), self.weights(w, rng)
        return x @ w.T, (x, w)

    def backward(self, saved: Saved, dy: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """``q(dy) q(w)`` and ``q(dy)^T q(x)``."""
        x, w = saved
        return self.gradient(dy, w.T, rng), self.gradient(dy.T, x.T, rng)


def rule(knobs: RoundedKnobs) -> Linear:
    """Casts by kind of operand, and the slope of weights where one is asked for."""
    if knobs.slope_order:
        return Sloped(inner=_products(knobs), format=parse_format(knobs.weights), order=knobs.slope_order)
    return _products(knobs)


def _products(knobs: RoundedKnobs) -> Linear:
    inputs, weights = cast_to(knobs.inputs, knobs.rounding), cast_to(knobs.weights, knobs.rounding)
    gradients = cast_to(knobs.gradients, knobs.gradient_rounding)
    mix = random_hadamard(knobs.hadamard_elements)
    if not knobs.is_cast_again:
        return StraightThrough(inputs=inputs, weights=weights, gradient=Product(left=gradients))
    return ThreeProducts(
        output=Product(left=inputs, right=weights, mix=mix),
        input_gradient=Product(left=gradients, right=weights, mix=mix),
        weight_gradient=Product(left=gradients, right=inputs, mix=mix),
    )


TECHNIQUE = Technique(
    name="rounded-linear",
    extension_point="numerics.linear",
    rule=rule,
    knobs=RoundedKnobs,
    gains="Products at the rate of the narrow format, and its bytes for every operand.",
    costs="Rounding error in every product; nearest rounding biases gradients that are small beside their block.",
    claims=("rouhani-2023",),
)
