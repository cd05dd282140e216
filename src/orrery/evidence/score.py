"""Errors of predictions against measurements.

The error of a row is relative to what was measured: e = predicted / measured - 1. Of a group of rows we state

- ``median``, ``mean`` and ``p90``: of |e| (the 90th percentile by linear interpolation);
- ``bias``: the median of e itself. Above zero: more rows are predicted too large than too small;
- ``covered_80``, ``covered_95``: the share of rows whose measured value lies inside the predicted interval.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The error of one metric over a group of rows. Coverage is None where no interval was stated."""

    rows: int
    median_abs_error_frac: float
    mean_abs_error_frac: float
    p90_abs_error_frac: float
    bias_frac: float
    covered_80_frac: float | None = None
    covered_95_frac: float | None = None


def relative_error(predicted: Floats, measured: Floats) -> Floats:
    """predicted / measured - 1, row by row."""
    return predicted / measured - 1.0


def score_errors(error: Floats, inside_80: Floats | None = None, inside_95: Floats | None = None) -> Score:
    """The score of a group whose signed relative errors are known."""
    size = np.abs(error)
    return Score(
        rows=len(error),
        median_abs_error_frac=float(np.median(size)),
        mean_abs_error_frac=float(np.mean(size)),
        p90_abs_error_frac=float(np.quantile(size, 0.9)),
        bias_frac=float(np.median(error)),
        covered_80_frac=_share(inside_80),
        covered_95_frac=_share(inside_95),
    )


def _share(inside: Floats | None) -> float | None:
    """The share of ones among the rows that have an interval."""
    if inside is None:
        return None
    known = inside[~np.isnan(inside)]
    return float(np.mean(known)) if known.size else None
