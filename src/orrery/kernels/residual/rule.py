"""exp(sum of trees), capped, and faded out beyond the range of the rows behind it."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from orrery.hardware.calibration import ResidualTrees
from orrery.kernels.residual._kernel import faded, total

Floats = NDArray[np.float64]

CAP = 0.5
"""Largest correction, as |log(measured / physics)|: a bigger one would be another kernel, not a residual."""


def correction(
    features: Floats, trees: ResidualTrees, within: Iterable[tuple[Floats, tuple[float, float]]] = ()
) -> Floats:
    """Factors on the physical time of every row of ``features`` (rows x trees.names).

    ``within``: sizes and the range they were measured in; outside, the factor returns to 1 within a factor of 2.
    """
    out = np.empty(len(features))
    total(features, trees.roots, trees.depths, trees.feature, trees.threshold, trees.low, trees.value, out)
    np.clip(out, -CAP, CAP, out=out)
    for size, (low, high) in within:
        faded(size, low, high, out)
    return np.exp(out, out=out)
