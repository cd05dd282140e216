"""FP8: inputs and weights in e4m3, gradients in e5m2, one scale a tensor taken from its largest magnitude.

Weights and activations need precision, gradients range, hence the two formats [micikevicius-2022]. A scale of the whole
tensor is the same along either axis, so backward products see the very values of the forward one.
"""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.numerics.learning.linear import Linear
from orrery.numerics.learning.techniques import rounded_linear
from orrery.numerics.learning.techniques.rounded_linear import RoundedKnobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Fp8Knobs:
    """The forward and the backward format."""

    forward: str = "e4m3fn/tensor"
    backward: str = "e5m2/tensor"


def rule(knobs: Fp8Knobs) -> Linear:
    """Three products of eight-bit operands."""
    return rounded_linear.rule(RoundedKnobs(inputs=knobs.forward, weights=knobs.forward, gradients=knobs.backward))


TECHNIQUE = Technique(
    name="fp8-linear",
    extension_point="numerics.linear",
    rule=rule,
    knobs=Fp8Knobs,
    gains="Twice the 16-bit rate and half its bytes for every operand.",
    costs="A scale of the whole tensor is set by its largest element, and small gradients flush to zero.",
    claims=("micikevicius-2022",),
    command="orrery experiment fp8-and-bf16",
)
