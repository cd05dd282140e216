"""Learned corrections of the power rule: kernels that reach the same rates do not draw the same.

A cache of constants toggles few wires, a padded tile multiplies zeros; the rates say nothing of either, the op does.
Only kernels that were measured are corrected: a step of many is answered by the rule.
"""

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.calibration import Calibration
from orrery.kernels.residual import correction
from orrery.kernels.residual.error_range import Spreads, around, scales

Floats = NDArray[np.float64]

OPS = ("gemm", "attention_prefill", "attention_decode", "moe")
"""The kernels whose power was measured; their place is a feature."""

NAMES = ("flops_frac", "bytes_frac", "log_balance", "drawn_frac", "op", "element_bytes")


def features(flops_frac: Floats, bytes_frac: Floats, drawn_frac: Floats, op: str, element_bytes: float) -> Floats:
    """One row of ``NAMES`` for every kernel: shares of the two roofs, and of the limit that the rule expects."""
    x = np.empty((flops_frac.size, len(NAMES)))
    x[:, 0], x[:, 1], x[:, 3] = flops_frac, bytes_frac, drawn_frac
    x[:, 2] = np.log2(np.maximum(flops_frac, 1e-6) / np.maximum(bytes_frac, 1e-6))
    x[:, 4], x[:, 5] = OPS.index(op), element_bytes
    return x


def is_known(found: Calibration, op: str) -> bool:
    """Whether trees speak of this kernel."""
    return op in OPS and found.residual is not None and found.residual.names == NAMES


def factors(x: Floats, found: Calibration) -> Floats:
    """measured / rule as the trees expect it."""
    return np.ones(len(x)) if found.residual is None else correction(x, found.residual)


def spreads(x: Floats, shape: tuple[int, ...], found: Calibration) -> Spreads | None:
    """Spread of the correction, row by row; None where nothing was measured."""
    known = found.row_spread()
    return None if known is None else around(known, scales(x, known), np.ones(len(x)), shape, found.spread)
