"""Softmax in integers, but for the exponential, which each technique takes its own way."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.numerics.arithmetic.computed import Array, Computed
from orrery.numerics.arithmetic.integer import ExpKnobs, check_step, codes, share
from orrery.numerics.arithmetic.ledger import Ledger

Exponential = Callable[[NDArray[Any], float, int], tuple[Array, float]]
"""Codes of e^x and their step, for codes x <= 0 of a step, with some bits shifted in."""


def integer_softmax(x: Array, step_ratio: float, knobs: ExpKnobs, exp: Exponential) -> Computed:
    """Three passes over codes: maximum, sum of exponentials, their shares; 3 N codes read, N written."""
    check_step(step_ratio)
    x, ledger = codes(x, step_ratio), Ledger()
    most = np.max(ledger.read(x), axis=-1, keepdims=True)
    raised, _ = exp(ledger.read(x) - most, step_ratio, knobs.num_shift_bits)
    total = np.sum(raised, axis=-1, keepdims=True)
    raised, _ = exp(ledger.read(x) - most, step_ratio, knobs.num_shift_bits)
    y = ledger.write(share(raised, total, knobs.num_output_bits))
    return Computed(codes=y, step_ratio=0.5**knobs.num_output_bits, ledger=ledger)
