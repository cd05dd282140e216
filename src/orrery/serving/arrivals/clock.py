"""Arrivals of a Poisson process whose rate is 1, and how they become those of a process whose rate varies.

An inhomogeneous Poisson process with cumulative rate L(t) is a unit-rate one read on the clock L: its n-th arrival is
L^-1 of the n-th unit arrival [cinlar-1975]. The laws below invert L exactly, so nothing is drawn and thrown away.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def unit_arrivals(count: int, stream: np.random.Generator) -> Floats:
    """The first ``count`` arrivals of a Poisson process of rate 1; more of them never change the first ones."""
    return np.cumsum(stream.standard_exponential(count))
