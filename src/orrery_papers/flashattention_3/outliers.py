"""Inputs of attention of which a few are far off."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def with_outliers(
    shape: tuple[int, ...], rng: np.random.Generator, *, outlier_frac: float = 0.001, outlier_std_ratio: float = 10.0
) -> Floats:
    """Standard normal entries, a few of which get a normal outlier on top: N(0, 1) + N(0, 100) Bernoulli(0.001)."""
    outliers = rng.normal(0.0, outlier_std_ratio, shape) * (rng.random(shape) < outlier_frac)
    return rng.normal(0.0, 1.0, shape) + outliers
