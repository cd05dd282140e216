"""Interface of a compressor of messages (extension point ``fleet.compressor``)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

NUMBER_BITS = 32
"""Bits of a number as it travels."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Message:
    """The receiver's reconstruction of a vector, and the bits that were sent."""

    received: Floats
    num_bits: float
