"""Three-pass softmax that keeps its exponentials: maximum; exponentials and sum; the stored ones times 1 / sum."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.exponential import extended_exp, scaled
from orrery.numerics.arithmetic.ledger import Ledger
from orrery.numerics.arithmetic.real import real


def rule(x: Array, step_ratio: float, knobs: NoKnobs) -> Computed:
    """Reads 3 N elements and writes 2 N."""
    x, ledger = real(x, step_ratio), Ledger()
    most = np.max(ledger.read(x), axis=-1, keepdims=True)
    raised = scaled(*extended_exp(ledger.read(x) - most))
    total = np.sum(raised, axis=-1, keepdims=True)
    stored = ledger.write(raised)
    y = ledger.write(ledger.read(stored) * (1.0 / total))
    return Computed(codes=y, step_ratio=1.0, ledger=ledger)


TECHNIQUE = Technique(
    name="three-pass-reload",
    extension_point="numerics.softmax",
    rule=rule,
    gains="Never overflows, and computes every exponential once.",
    costs="Exponentials go to memory and back: 5 N memory operations.",
    claims=("two-pass-softmax",),
    command="orrery kernel softmax --device NAME --tokens N --width N --variant reload",
)
