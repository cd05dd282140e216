"""Layer normalisation in integers, but for the square root, which each technique takes its own way.

With n elements, mean m rounded to a whole code and s = sqrt(sum (x - m)^2), the result is (x - m) * (2^31 / s), worth
sqrt(n) / 2^31 a step: the root of n belongs to the scale, and no sum is divided. Kim et al. 2021, "I-BERT", section
3.6.
"""

import math
from collections.abc import Callable

import numpy as np

from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.integer import codes
from orrery.numerics.arithmetic.ledger import Ledger

NUM_FRACTION_BITS = 31


def integer_norm(x: Array, step_ratio: float, root: Callable[[Array], Array]) -> Computed:
    """Mean, spread and quotients, a pass each; the step of the input cancels."""
    x, ledger, n = codes(x, step_ratio), Ledger(), x.shape[-1]
    mean = (2 * np.sum(ledger.read(x), axis=-1, keepdims=True) + n) // (2 * n)
    centred = ledger.read(x) - mean
    spread = root(np.maximum(np.sum(centred * centred, axis=-1, keepdims=True), 1))
    y = ledger.write((ledger.read(x) - mean) * ((1 << NUM_FRACTION_BITS) // spread))
    return Computed(codes=y, step_ratio=math.sqrt(n) / 2.0**NUM_FRACTION_BITS, ledger=ledger)
