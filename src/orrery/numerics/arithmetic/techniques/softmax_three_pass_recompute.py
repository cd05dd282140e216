"""Three-pass softmax that computes every exponential twice: maximum; sum; exponentials again, times 1 / sum."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.exponential import extended_exp, scaled
from orrery.numerics.arithmetic.ledger import Ledger
from orrery.numerics.arithmetic.real import real


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """Reads 3 N elements and writes N."""
    x, ledger = real(x, step_ratio), Ledger()
    most = np.max(ledger.read(x), axis=-1, keepdims=True)
    total = np.sum(scaled(*extended_exp(ledger.read(x) - most)), axis=-1, keepdims=True)
    y = ledger.write(scaled(*extended_exp(ledger.read(x) - most)) * (1.0 / total))
    return Computed(codes=y, step_ratio=1.0, ledger=ledger)


TECHNIQUE = Technique(
    name="three-pass-recompute",
    extension_point="numerics.softmax",
    rule=rule,
    gains="Never overflows and stores nothing but the result: 4 N memory operations.",
    costs="Every exponential is computed twice.",
    claims=("two-pass-softmax",),
    command="orrery kernel softmax --device NAME --tokens N --width N --variant recompute",
)
