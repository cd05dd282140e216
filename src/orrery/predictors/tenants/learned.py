"""Slowdown predictors: rules that learn a VM's speed among its neighbours from the host's counters.

A rule takes its knobs, the lesson (runs of scaled metrics, second by second; scaled speeds) and what to call at every
step; it answers with a function from such runs to a tenth, a half and nine tenths of what the speed may be.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import ExtensionPoint
from orrery.predictors.learn.training_set import OnStep, TrainingSet
from orrery.predictors.tenants import techniques
from orrery.predictors.tenants.interference import Runs

PREDICTORS = ExtensionPoint(name="predictors.slowdown", folder=techniques, noun="predictor of slowdowns")

NOBODY = -1.0
"""Metric of an empty slot; others are in deviations around their mean."""


def learnt(
    name: str, seen: Runs, *, steps: int, seed: int, on_step: OnStep = lambda: None
) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Quantiles of the speed by the technique called ``name``, for metrics of other runs."""
    known = np.where(seen.metrics > 0.0, seen.metrics, np.nan)
    mean, spread = np.nanmean(known, axis=(0, 1)), np.maximum(np.nanstd(known, axis=(0, 1)), 1e-6)

    def scaled(metrics: NDArray[Any]) -> NDArray[np.float32]:
        return np.where(metrics > 0.0, (metrics - mean) / spread, NOBODY).astype(np.float32)

    found = PREDICTORS.get(name)
    usual, around = float(np.median(seen.speed_frac)), float(seen.speed_frac.std())
    targets = ((seen.speed_frac - usual) / around).astype(np.float32)
    lesson = TrainingSet(inputs=scaled(seen.metrics), targets=targets, steps=steps, seed=seed)
    predict = found.rule(found.knobs(), lesson, on_step)
    return lambda metrics: np.clip(predict(scaled(metrics)) * around + usual, 0.0, 1.0)
