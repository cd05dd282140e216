"""A grid whose scales are searched: of several clips, each scale takes the one with the least squared error.

Where a block holds one large value and many small ones, a clip below that value makes the steps of all others finer. Up
to the largest value, the error of clipping grows with its square while that of rounding shrinks with the step's.
"""

from dataclasses import dataclass

import numpy as np

from orrery.numerics.recipes.grid import Around, Fitted, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched(Around):
    """Another grid, with the best of ``clip_ratios`` for each of its scales."""

    clip_ratios: tuple[float, ...]

    def fit(self, values: Floats, clip_ratio: float = 1.0) -> Fitted:
        """The scales with the least squared error; the unclipped ones unless another is strictly better."""
        best = self.grid.fit(values, clip_ratio)
        least = self._errors(best, values)
        for ratio in self.clip_ratios:
            fitted = self.grid.fit(values, clip_ratio * ratio)
            errors = self._errors(fitted, values)
            best = fitted.where(errors < least, best)
            least = np.minimum(errors, least)
        return best

    def _errors(self, fitted: Fitted, values: Floats) -> Floats:
        """Squared error of everything that shares a scale, at each of its elements."""
        return self.shared_sum(np.square(fitted.round(values) - values.astype(np.float64)))


def clips(least_ratio: float, count: int) -> tuple[float, ...]:
    """Ratios (``count`` of them) from the least up to one, each the same factor above the last."""
    return tuple(np.geomspace(least_ratio, 1.0, count).tolist())
