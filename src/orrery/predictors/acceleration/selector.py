"""Randomised trees that expect what each acceleration makes of a task's latency, and how far choices are from the best.

They learn log2(latency / plain latency) of all accelerations at once [geurts-2006]. Trees disagree where the history
says little: their quantiles are the doubt.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.predictors.acceleration.features import Floats, features
from orrery.predictors.acceleration.history import History
from orrery.predictors.acceleration.task import Task
from orrery.predictors.learn.extra import learning_package

NUM_TREES = 100

MAX_RATIO = 64.0
"""An acceleration that makes a task impossible counts as this many times slower than the plain server."""

Choices = NDArray[np.intp]
"""The place of an acceleration among all, a task each."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selector:
    """Trained trees."""

    trees: Any  # scikit-learn's

    def opinions(self, x: Floats) -> Floats:
        """log2(latency / plain latency) as every tree expects it: trees, rows of ``x``, accelerations."""
        return np.stack([np.asarray(tree.predict(x), dtype=np.float64) for tree in self.trees.estimators_])

    def choose(self, x: Floats) -> Choices:
        """The acceleration with the least expected latency, a row each."""
        return np.asarray(self.trees.predict(x), dtype=np.float64).argmin(axis=1)


def rows_of(tasks: Sequence[Task]) -> Floats:
    """The features of many tasks."""
    return np.stack([features(task) for task in tasks])


def trained(history: History, x: Floats, seed: int = 0) -> Selector:
    """Trees that know the tasks of ``history``, whose features are ``x``."""
    ensemble = learning_package("sklearn.ensemble")
    trees = ensemble.ExtraTreesRegressor(n_estimators=NUM_TREES, random_state=seed)
    return Selector(trees=trees.fit(x, slowdown(history)))


def slowdown(history: History) -> Floats:
    """log2(latency / plain latency), tasks by accelerations."""
    plain_s = history.plain_s[:, None]
    return np.log2(np.minimum(history.latency_s, MAX_RATIO * plain_s) / plain_s)


def regret(history: History, chosen: Choices) -> Floats:
    """How much longer than under the best acceleration, as a share of that, a task each."""
    best_s = history.latency_s.min(axis=1)
    return history.latency_s[np.arange(chosen.size), chosen] / best_s - 1.0


def best_for_all(history: History) -> int:
    """The one acceleration with the least mean regret."""
    tasks, methods = history.latency_s.shape
    always: list[Choices] = [np.full(tasks, i, dtype=np.intp) for i in range(methods)]
    return int(np.argmin([regret(history, chosen).mean() for chosen in always]))
