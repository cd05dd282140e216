"""Learned corrections of measured products beyond the rule, as factors on its time."""

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.calibration import Calibration
from orrery.kernels.gemm import _kernel as kernel
from orrery.kernels.residual import correction

Floats = NDArray[np.float64]


def features(m: Floats, n: Floats, k: Floats, rows: Floats, machine: Floats) -> Floats:
    """One row of ``kernel.FEATURES`` for every shape; ``rows`` are the kernel's under the measured condition."""
    x = np.empty((m.size, len(kernel.FEATURES)))
    kernel.features(m, n, k, rows, machine, x)
    return x


def factors(m: Floats, n: Floats, k: Floats, rows: Floats, machine: Floats, found: Calibration) -> Floats:
    """measured / rule as the trees expect it, 1 far outside the measured sizes."""
    if found.residual is None:
        return np.ones(m.size)
    sizes = {"m": m, "n": n, "k": k}
    within = [(sizes[name], found.range[name]) for name in sizes if name in found.range]
    return correction(features(m, n, k, rows, machine), found.residual, within)
