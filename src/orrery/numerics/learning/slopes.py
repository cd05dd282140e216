"""Rounding with a slope: the gradient of a weight is multiplied by that of a smooth curve through the steps.

Between two neighbours of the grid, with u from -1 at the lower to 1 at the upper, the curve is sign(u) |u|^(1/k): steep
where rounding decides, flat at the neighbours. Its slope is (1 / k) |u|^(1/k - 1), cut off at 3 [wang-2025-fp4].
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.numerics.format import Format
from orrery.numerics.learning.linear import Array, Linear, Saved
from orrery.numerics.quantise import quantise

STEEPEST = 3.0
"""Slopes are cut off here, as the paper does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sloped:
    """A layer whose weight gradient passes through the curve; ``order`` is k."""

    inner: Linear
    format: Format
    order: float

    def forward(self, x: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Saved]:
        """As the layer inside."""
        y, saved = self.inner.forward(x, w, rng)
        return y, (w, *saved)

    def backward(self, saved: Saved, dy: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """As the layer inside, ``dw`` times the slope at each weight."""
        dx, dw = self.inner.backward(saved[1:], dy, rng)
        return dx, dw * slope(saved[0], self.format, self.order)


def slope(w: Array, format: Format, order: float) -> Array:
    """The curve's slope at every weight, in a format with one scale for so many elements of a row."""
    share = format.scaling.levels[0].share if format.scaling.levels else "none"
    if format.element is None or not isinstance(share, tuple) or share[0] != 1:
        raise ScenarioError(f"slopes: {format.name} has no blocks along rows; write a format such as mxfp4 or nvfp4.")
    stored = quantise(w, format)
    scales = (stored.scales / stored.outer).reshape(len(w), -1).repeat(share[1], axis=1)[:, : w.shape[1]]
    values = np.unique(format.element.values())
    at = np.clip(w / np.where(scales > 0.0, scales, 1.0), values[0], values[-1])
    upper = np.clip(np.searchsorted(values, at, side="right"), 1, len(values) - 1)
    below, above = values[upper - 1], values[upper]
    u = np.abs(2.0 * (at - below) / (above - below) - 1.0)
    return np.minimum(STEEPEST, np.maximum(u, 1e-9) ** (1.0 / order - 1.0) / order).astype(w.dtype)
