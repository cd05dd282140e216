"""Integer layer normalisation with a square root found one binary digit at a time."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.integer import bitwise_root
from orrery.numerics.arithmetic.integer_norm import integer_norm


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """3 N codes read, N written."""
    return integer_norm(x, step_ratio, bitwise_root)


TECHNIQUE = Technique(
    name="bitwise-layer-norm",
    extension_point="numerics.layer_norm",
    rule=rule,
    gains="The exact integer root by compare, subtract and shift, in a fixed number of steps.",
    costs="One step for every two bits of the sum, always.",
    claims=("kim-2021",),
)
