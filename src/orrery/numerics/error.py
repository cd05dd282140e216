"""Errors of numbers against the exact ones.

SQNR = 10 log10(sum x^2 / sum (x - y)^2) decibels: every bit of an ideal uniform grid is worth 6.02 dB.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.codec import _kernel as loops
from orrery.numerics.codec.pieces import stretches
from orrery.numerics.codec.rounding import as_floats
from orrery.numerics.format import Format
from orrery.numerics.quantise import as_format, round_trip_pieces
from orrery.numerics.rounding import Rounding

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReport:
    """Errors of one tensor in one format. Infinite SQNR: nothing was lost."""

    num_elements: int
    sqnr_db: float
    mean_square_error: float
    max_abs_error: float
    mean_error: float  # bias: what stands there less what should
    relative_error_frac: float  # root of the squared errors over root of the squares
    cosine_similarity: float
    zeros_frac: float  # numbers other than zero that became zero


@dataclass(slots=True, kw_only=True)
class ErrorSums:
    """Sums from which an ErrorReport is made; pieces are added one by one, in FP64."""

    count: int = 0
    sums: Floats = field(default_factory=lambda: np.zeros(7))  # as ``add_errors`` of the kernel lists them

    def add(self, exact: NDArray[Any], stored: NDArray[Any]) -> None:
        """Count a piece of a tensor."""
        self.count += exact.size
        x, y = as_floats(exact).reshape(-1), as_floats(stored).reshape(-1)
        wider = np.result_type(x, y)
        loops.add_errors(x.astype(wider, copy=False), y.astype(wider, copy=False), self.sums)

    @property
    def is_finite(self) -> bool:
        """Whether all numbers so far were."""
        return bool(np.isfinite(self.sums).all())

    def report(self) -> ErrorReport:
        """The errors so far."""
        count = max(1, self.count)
        squares, stored_squares, products, error_squares, errors, largest, zeros = self.sums.tolist()
        ratio = error_squares / squares if squares else (math.inf if error_squares else 0.0)
        norms = math.sqrt(squares * stored_squares)
        return ErrorReport(
            num_elements=self.count,
            sqnr_db=decibels(ratio),
            mean_square_error=error_squares / count,
            max_abs_error=largest,
            mean_error=errors / count,
            relative_error_frac=math.sqrt(ratio),
            cosine_similarity=products / norms if norms else float(squares == stored_squares),
            zeros_frac=zeros / count,
        )


def decibels(noise_ratio: float) -> float:
    """Signal over noise, in decibels, of a ratio of noise to signal."""
    return -10.0 * math.log10(noise_ratio) if noise_ratio > 0 else math.inf


def compare(exact: ArrayLike, stored: ArrayLike) -> ErrorReport:
    """The errors of ``stored`` numbers against ``exact`` ones of the same shape."""
    x, y = np.asarray(exact), np.asarray(stored)
    if x.shape != y.shape:
        raise ScenarioError(f"Errors are between arrays of one shape; got {x.shape} and {y.shape}.")
    sums = ErrorSums()
    sums.add(x, y)
    return sums.report()


def error_of(
    x: NDArray[Any],
    format: Format | str,
    *,
    rounding: Rounding = Rounding.NEAREST_EVEN,
    rng: np.random.Generator | None = None,
) -> ErrorReport:
    """The errors that ``format`` makes on ``x``, piece by piece: no copy of the tensor is made.

    Raises ScenarioError where x holds what is not a finite number: its error would mean nothing.
    """
    known = as_format(format)
    sums, flat = ErrorSums(), x.reshape(-1)
    for where, stored in round_trip_pieces(x, known, rounding=rounding, rng=rng):
        sums.add(flat[where], stored)
    if not sums.is_finite:
        count = int(sum(part.size - np.count_nonzero(np.isfinite(part)) for _, part in stretches(x)))
        raise ScenarioError(
            f"The tensor has {count} numbers that are NaN or infinite, so its error means nothing; mend it first."
            if count
            else f"Numbers of this size become infinite or NaN in {known.name}; scale the tensor first."
        )
    return sums.report()
