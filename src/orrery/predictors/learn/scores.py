"""Quality of predictions: relative errors, explained variance, and rank correlation."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.serving.synthesis.fitted import rank_correlation


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Predictions beside measurements; errors are |predicted - measured| / measured."""

    median_error_frac: float
    mean_error_frac: float
    p90_error_frac: float
    r2: float  # 1 - squared errors / variance of what was measured
    rank_correlation: float  # Spearman's


def score(predicted: NDArray[Any], measured: NDArray[Any]) -> Scores:
    """The scores of predictions of positive measurements."""
    guessed, true = predicted.astype(np.float64).ravel(), measured.astype(np.float64).ravel()
    error = np.abs(guessed - true) / true
    return Scores(
        median_error_frac=float(np.median(error)),
        mean_error_frac=float(error.mean()),
        p90_error_frac=float(np.quantile(error, 0.9)),
        r2=1.0 - float(np.mean((guessed - true) ** 2)) / float(true.var()),
        rank_correlation=rank_correlation(_places(guessed), _places(true)),
    )


def _places(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Whole numbers in the same order, ties kept."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)
