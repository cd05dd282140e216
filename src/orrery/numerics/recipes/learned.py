"""Learned rounding (AdaRound): whether each weight goes down or up is learned from the output error.

A weight is the point below it plus h of the step to the point above, h = clip(1.2 sigmoid(v) - 0.1, 0, 1), and v
follows the gradient of

    |X Wᵀ - X̂ Ŵᵀ|² / (error of rounding to nearest, a weight) + penalty · sum (1 - |2 h - 1|^beta)

with Adam, beta falling by a cosine so that h may first move freely and is then driven to 0 or 1.
[Nagel et al. 2020, section 4: the rectified sigmoid and the regulariser. They sum errors over outputs and take 0.01;
here errors are counted in those of rounding to nearest, so that one penalty serves layers of any size.]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_above, check_range
from orrery.numerics.adam import Adam
from orrery.numerics.recipes.grid import Fitted, Floats

Doubles = NDArray[np.float64]

STRETCH = 0.1
"""Stretch of the sigmoid beyond 0 and 1 on either side, so that h reaches both."""

BETA_FIRST, BETA_LAST = 20.0, 2.0
"""Sharpness of the regulariser at the start of its work and at the end of the run."""

FREE_FRAC = 0.2
"""Share of the steps during which the regulariser does not act."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learning:
    """Learning schedule: steps, the step size of v, and the price of a half in errors of rounding to nearest."""

    num_steps: int = 500
    step_ratio: float = 0.02
    penalty_ratio: float = 10.0

    def __post_init__(self) -> None:
        check_range(self, "num_steps", 1, 1_000_000)
        check_above(self, "step_ratio", 0.0)
        check_above(self, "penalty_ratio", 0.0)


def round_learned(weights: Floats, grid: Fitted, inputs: Floats, quantised: Floats, learning: Learning) -> Floats:
    """The weights on their grid, each at the one of its two neighbours that serves the output."""
    low, nearest = grid.round(weights, "below").astype(np.float64), grid.round(weights)
    step = grid.round(weights, "above") - low
    problem = _Problem.of(weights, nearest, inputs, quantised)
    share = np.divide(weights - low, step, out=np.full(step.shape, 0.5), where=step != 0).clip(0.01, 0.99)
    share = (share + STRETCH) / (1 + 2 * STRETCH)
    v = np.log(share / (1 - share))
    moving = Adam(rate=learning.step_ratio)
    for now in range(1, learning.num_steps + 1):
        h, slope = _rectified(v)
        gradient = problem.gradient(low + step * h) * step
        gradient += learning.penalty_ratio * _halves_gradient(h, now / learning.num_steps)
        v -= moving.step(gradient * slope)
    return (low + step * (_rectified(v)[0] >= 0.5)).astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Problem:
    """The output error as a quadratic of the weights, counted in the error of rounding to nearest."""

    gram: Doubles  # X̂ᵀX̂
    target: Doubles  # W XᵀX̂
    unit: float

    @classmethod
    def of(cls, weights: Floats, nearest: Floats, inputs: Floats, quantised: Floats) -> "_Problem":
        x, seen = inputs.astype(np.float64), quantised.astype(np.float64)
        loss = float(np.sum(np.square(x @ weights.T - seen @ nearest.T)))
        return cls(gram=seen.T @ seen, target=weights @ (x.T @ seen), unit=loss / weights.size or 1.0)

    def gradient(self, weights: Doubles) -> Doubles:
        """By the weights."""
        return 2 * (weights @ self.gram - self.target) / self.unit


def _rectified(v: Doubles) -> tuple[Doubles, Doubles]:
    """h of v, and its slope."""
    s = 1 / (1 + np.exp(-v))
    h = s * (1 + 2 * STRETCH) - STRETCH
    return h.clip(0, 1), np.where((h > 0) & (h < 1), (1 + 2 * STRETCH) * s * (1 - s), 0.0)


def _halves_gradient(h: Doubles, done_frac: float) -> Doubles:
    """Slope of 1 - |2 h - 1|^beta at this point of the run."""
    if done_frac < FREE_FRAC:
        return np.zeros(h.shape)
    passed = (done_frac - FREE_FRAC) / (1 - FREE_FRAC)
    beta = BETA_LAST + (BETA_FIRST - BETA_LAST) * (1 + np.cos(np.pi * passed)) / 2
    return -2 * beta * np.sign(2 * h - 1) * np.abs(2 * h - 1) ** (beta - 1)
