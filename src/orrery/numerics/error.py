"""How far numbers are from those that they stand for.

SQNR = 10 log10(sum x^2 / sum (x - y)^2) decibels: every bit of an ideal uniform grid is worth 6.02 dB.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.format import Format
from orrery.numerics.quantise import as_format, codec_of, round_trip_pieces
from orrery.numerics.rounding import Rounding


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
    squares: float = 0.0
    stored_squares: float = 0.0
    products: float = 0.0
    error_squares: float = 0.0
    errors: float = 0.0
    largest: float = 0.0
    zeros: int = field(default=0)

    def add(self, exact: NDArray[Any], stored: NDArray[Any]) -> None:
        """Count a piece of a tensor."""
        x, y = np.asarray(exact, dtype=np.float64).ravel(), np.asarray(stored, dtype=np.float64).ravel()
        error = y - x
        self.count += x.size
        self.squares += float(x @ x)
        self.stored_squares += float(y @ y)
        self.products += float(x @ y)
        self.error_squares += float(error @ error)
        self.errors += float(error.sum())
        self.largest = max(self.largest, float(np.abs(error).max(initial=0.0)))
        self.zeros += int(np.count_nonzero((y == 0) & (x != 0)))

    def report(self) -> ErrorReport:
        """The errors so far."""
        count = max(1, self.count)
        ratio = self.error_squares / self.squares if self.squares else (math.inf if self.error_squares else 0.0)
        norms = math.sqrt(self.squares * self.stored_squares)
        return ErrorReport(
            num_elements=self.count, sqnr_db=decibels(ratio), mean_square_error=self.error_squares / count,
            max_abs_error=self.largest, mean_error=self.errors / count, relative_error_frac=math.sqrt(ratio),
            cosine_similarity=self.products / norms if norms else float(self.squares == self.stored_squares),
            zeros_frac=self.zeros / count,
        )  # fmt: skip


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
    codec_of(known)
    sums, flat = ErrorSums(), x.reshape(-1)
    for where, stored in round_trip_pieces(x, known, rounding=rounding, rng=rng):
        if not np.isfinite(stored).all() or not np.isfinite(flat[where]).all():
            count = x.size - int(np.isfinite(x).sum())
            raise ScenarioError(
                f"The tensor has {count} numbers that are NaN or infinite, so its error means nothing; mend it first."
                if count else f"Numbers of this size become infinite or NaN in {known.name}; scale the tensor first."
            )  # fmt: skip
        sums.add(flat[where], stored)
    return sums.report()
