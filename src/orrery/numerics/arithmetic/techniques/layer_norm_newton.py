"""Integer layer normalisation with Newton's square root until it settles (Kim et al. 2021, I-BERT)."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.integer import newton_root
from orrery.numerics.arithmetic.integer_norm import integer_norm


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """3 N codes read, N written."""
    return integer_norm(x, step_ratio, newton_root)


TECHNIQUE = Technique(
    name="newton-layer-norm",
    extension_point="numerics.layer_norm",
    rule=rule,
    gains="The exact integer root in a handful of steps.",
    costs="An integer division a step, and as many steps as the slowest row needs.",
    claims=("kim-2021",),
)
