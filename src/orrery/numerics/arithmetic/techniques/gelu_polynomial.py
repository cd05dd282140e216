"""i-GELU of I-BERT: the error function as a clipped parabola, in integers.

erf(x) ~ sgn(x) (1 - 0.2888 (min(|x|, 1.769) - 1.769)^2). Kim et al. 2021, "I-BERT", section 3.4 and algorithm 2.
"""

import math

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.integer import check_step, codes
from orrery.numerics.arithmetic.ledger import Ledger

CURVATURE, CLIP = 0.2888, 1.769


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """One read and one write an element; constants of the step are prepared off-line as integers."""
    check_step(step_ratio)
    x, ledger = codes(x, step_ratio), Ledger()
    squared_ratio = CURVATURE * (step_ratio**2 / 2.0)  # what a step of the parabola is worth
    clip = math.floor(CLIP * math.sqrt(2.0) / step_ratio)
    one = math.floor(1.0 / squared_ratio)
    held = ledger.read(x)
    below = np.minimum(np.abs(held), clip) - clip
    erf = np.sign(held) * (one - below * below)
    y = ledger.write(held * (erf + one))
    return Computed(codes=y, step_ratio=step_ratio * squared_ratio / 2.0, ledger=ledger)


TECHNIQUE = Technique(
    name="polynomial-gelu",
    extension_point="numerics.gelu",
    rule=rule,
    gains="GELU on integer units: no exponential, no division.",
    costs="Within about 0.02 of GELU; two multiplications of wide integers an element.",
    claims=("kim-2021",),
)
