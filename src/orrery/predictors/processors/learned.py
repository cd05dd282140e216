"""The extension point of score predictors: rules that learn logarithms of scores from features of machines.

A rule takes its knobs, the lesson (scaled features and their missing flags; scaled logarithms of all suites' scores)
and what to call at every step; it answers with a function of such features.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import ExtensionPoint
from orrery.predictors.learn.training_set import OnStep, TrainingSet
from orrery.predictors.processors import techniques
from orrery.predictors.processors.scored import Table

PREDICTORS = ExtensionPoint(name="predictors.machine-score", folder=techniques, noun="predictor of scores")


def learnt(
    name: str, seen: Table, *, steps: int, seed: int, on_step: OnStep = lambda: None
) -> Callable[[Table], NDArray[Any]]:
    """Logarithms of scores by the technique called ``name``, for tables of other machines."""
    mean, spread = seen.scores.mean(axis=0), seen.scores.std(axis=0)
    targets = ((seen.scores - mean) / spread).astype(np.float32)
    found = PREDICTORS.get(name)
    lesson = TrainingSet(inputs=seen.inputs(seen), targets=targets, steps=steps, seed=seed)
    predict = found.rule(found.knobs(), lesson, on_step)
    return lambda table: predict(table.inputs(seen)) * spread + mean
