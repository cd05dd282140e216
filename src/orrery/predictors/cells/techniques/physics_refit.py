"""Physics refit: the kernel rules from a data sheet, with four ratios that a handful of timings correct.

Minimises sum (log predicted / measured)^2 / noise^2 + sum (log ratio / stiffness)^2 over the ratios of products,
depthwise passes, other passes and launches, by Gauss-Newton with slopes from differences.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.predictors.cells.latency import LAUNCH, NUM_CLASSES, Floats
from orrery.predictors.cells.learned import Fit, OnStep, Predictor, Samples

ROUNDS = 20
STEP = 1e-3

LAUNCH_STARTS = (0.0, -1.0, 1.0)
"""Logarithms to start from: where launches hide kernels, or kernels launches, the hidden leave no slope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefitKnobs:
    """Expected error of a timing and of a ratio, in logarithms."""

    noise_frac: float = 0.03
    stiffness_ratio: float = 0.7

    def __post_init__(self) -> None:
        check_above(self, "noise_frac", 0.0)
        check_above(self, "stiffness_ratio", 0.0)


def rule(knobs: RefitKnobs, on_step: OnStep) -> Fit:
    """Return the fit; it needs no preparation."""

    def fit(samples: Samples) -> Predictor:
        def residuals(x: Floats) -> Floats:
            predicted = samples.nominal.scaled(np.exp(x)).latency_s(samples.cells)
            return np.concatenate([np.log(predicted / samples.latency_s) / knobs.noise_frac, x / knobs.stiffness_ratio])

        found = (_least_squares(residuals, np.eye(NUM_CLASSES)[LAUNCH] * start) for start in LAUNCH_STARTS)
        best = min(found, key=lambda x: float(residuals(x) @ residuals(x)))
        return samples.nominal.scaled(np.exp(best)).latency_s

    return fit


def _least_squares(residuals: Callable[[Floats], Floats], x: Floats) -> Floats:
    """Where the residuals' squares are least, from ``x`` on, each step halved until it helps."""
    at = residuals(x)
    for _ in range(ROUNDS):
        slope = np.stack([(residuals(x + STEP * unit) - at) / STEP for unit in np.eye(x.size)], axis=1)
        step = -np.linalg.lstsq(slope, at, rcond=None)[0]
        while np.abs(step).max() > STEP and residuals(x + step) @ residuals(x + step) >= at @ at:
            step = step / 2
        if np.abs(step).max() <= STEP:
            break
        x = x + step
        at = residuals(x)
    return x


TECHNIQUE = Technique(
    name="physics-refit",
    extension_point="predictors.cell-latency",
    rule=rule,
    knobs=RefitKnobs,
    gains="Four numbers to learn, so that ten timings are plenty where the rules' form is right.",
    costs="Needs the data sheet, and rules that know the kernels.",
    claims=("williams-2009-roofline",),
    command="orrery experiment few-shot-latency",
)
