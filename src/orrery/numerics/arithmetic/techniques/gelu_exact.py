"""GELU as it is defined, x Phi(x) = x (1 + erf(x / sqrt 2)) / 2, in double precision: what the others are held against.

Hendrycks and Gimpel 2016, "Gaussian Error Linear Units".
"""

import math

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed, check_input
from orrery.numerics.arithmetic.ledger import Ledger

erf = np.frompyfunc(math.erf, 1, 1)


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """One read and one write an element."""
    check_input(x, step_ratio, is_integer=False)
    ledger = Ledger()
    values = ledger.read(x * np.float64(step_ratio))
    spread = np.asarray(erf(values * math.sqrt(0.5)), dtype=np.float64)  # erf is a Python function, element by element
    y = values * (1.0 + spread) * 0.5
    return Computed(codes=ledger.write(y), step_ratio=1.0, ledger=ledger)


TECHNIQUE = Technique(
    name="exact-gelu",
    extension_point="numerics.gelu",
    rule=rule,
    gains="Exact to double precision.",
    costs="An error function an element, on floating-point units.",
    claims=("hendrycks-2016",),
)
