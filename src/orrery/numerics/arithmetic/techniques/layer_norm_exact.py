"""Layer normalisation as it is defined, in double precision: (x - mean) / standard deviation of the last axis."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed, check_input
from orrery.numerics.arithmetic.ledger import Ledger


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """Mean, spread and quotients, a pass each; a row of equal elements becomes zeros."""
    check_input(x, step_ratio, is_integer=False)
    values, ledger = x * np.float64(step_ratio), Ledger()
    mean = np.sum(ledger.read(values), axis=-1, keepdims=True) * (1.0 / x.shape[-1])
    centred = ledger.read(values) - mean
    spread = np.sqrt(np.sum(centred * centred, axis=-1, keepdims=True) * (1.0 / x.shape[-1]))
    y = (ledger.read(values) - mean) / np.maximum(spread, np.finfo(np.float64).tiny)
    return Computed(codes=ledger.write(y), step_ratio=1.0, ledger=ledger)


TECHNIQUE = Technique(
    name="exact-layer-norm",
    extension_point="numerics.layer_norm",
    rule=rule,
    gains="Exact to double precision.",
    costs="A square root a row and a quotient an element, on floating-point units.",
    claims=("ba-2016",),
)
