"""Inputs of the rules that compute in float32."""

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange
from orrery.numerics.arithmetic.computed import Array, check_input

LARGEST = 2.0**14
"""Beyond it an exponent times the high part of ln 2 is rounded, and the rest of an exponential would be lost."""


def real(x: Array, step_ratio: float) -> NDArray[np.float32]:
    """Codes times their step in float32; numbers that no exponential can be reduced from are refused."""
    check_input(x, step_ratio, is_integer=False)
    values = (x * np.float64(step_ratio)).astype(np.float32)
    if not (np.abs(values) < LARGEST).all():
        raise OutOfRange(f"Magnitudes of {np.abs(values).max():g} in x; write numbers below {LARGEST:g}.")
    return values
