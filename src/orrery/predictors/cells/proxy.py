"""A stand-in for accuracy: what a network of the DARTS space might be worth, as a stated function of its choices.

    quality = sum over nodes of log(1 + sum over the node's two choices of a),   a = capacity x affinity

Capacity is 1 for passing an input on and 1 more for each pair of a depthwise and a pointwise product; the logarithm is
the diminishing return. Affinity is a lognormal draw for every alternative: how well an operation suits its place in one
task, which has nothing to do with its speed. Nobody trained anything: this is no network's accuracy.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.predictors.cells.darts import NODE_COLUMNS, OPERATIONS
from orrery.predictors.cells.latency import Floats
from orrery.predictors.learn.extra import learning_package

AFFINITY_SPREAD = 0.3
"""Standard deviation of the logarithm: assumed."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Proxy:
    """Several tasks at once: the worth of every column in each."""

    worth_ratio: Floats  # (task, column)

    def quality(self, lines: Any) -> Any:
        """Quality of one line per task, encoded or relaxed; differentiable."""
        anp = learning_package("autograd.numpy")
        return anp.sum(anp.log(1.0 + (lines * self.worth_ratio) @ _nodes()), axis=1)

    def repeated(self, times: int) -> "Proxy":
        """Every task so many times in a row."""
        return Proxy(worth_ratio=np.repeat(self.worth_ratio, times, axis=0))


def draw_proxy(num_tasks: int, rng: np.random.Generator, affinity_spread: float = AFFINITY_SPREAD) -> Proxy:
    """Tasks that differ in what suits where."""
    capacity = np.tile([1.0 + operation.num_pairs for operation in OPERATIONS], sum(NODE_COLUMNS) // len(OPERATIONS))
    return Proxy(worth_ratio=capacity * np.exp(affinity_spread * rng.standard_normal((num_tasks, capacity.size))))


def _nodes() -> Floats:
    """Which node each column belongs to, as a matrix of zeros and ones."""
    return np.repeat(np.eye(len(NODE_COLUMNS)), NODE_COLUMNS, axis=0)
