"""I-LayerNorm of I-ViT: ten Newton steps for the square root, whatever the row (Li and Gu 2023, section 3.5)."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.integer import fixed_newton_root
from orrery.numerics.arithmetic.integer_norm import integer_norm


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """3 N codes read, N written."""
    return integer_norm(x, step_ratio, fixed_newton_root)


TECHNIQUE = Technique(
    name="i-layer-norm",
    extension_point="numerics.layer_norm",
    rule=rule,
    gains="A fixed loop, so that rows run side by side without branches.",
    costs="Ten steps do not reach a root far from 2^16: rows of a small spread come out too small.",
    claims=("i-vit",),
)
