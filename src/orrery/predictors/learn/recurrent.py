"""A gated recurrent unit that reads a run second by second, and a perceptron on where it ends [cho-2014].

z, r = (1 + tanh([x, 1, h] W)) / 2    h' = (1 - z) h + z tanh([x, 1, r h] W), each with a W of its own
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.predictors.learn.attention import normal
from orrery.predictors.learn.extra import learning_package
from orrery.predictors.learn.network import Array, Perceptron

STEEPEST = 15.0
"""Beyond it a hyperbolic tangent is flat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrent:
    """A run of many metrics, second by second; several outputs."""

    num_metrics: int
    width: int
    hidden: int
    num_outputs: int

    @property
    def _head(self) -> Perceptron:
        return Perceptron(widths=(self.width, self.hidden, self.num_outputs))

    def start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random parameters."""
        inputs = self.num_metrics + 1 + self.width
        return {part: normal(rng, inputs, self.width) for part in ("update", "reset", "fresh")} | self._head.start(rng)

    def __call__(self, parameters: Mapping[str, Any], x: Any) -> Any:
        """Outputs for (runs, seconds, metrics)."""
        anp = learning_package("autograd.numpy")

        def bent(part: str, now: Any, state: Any) -> Any:
            seen = anp.matmul(anp.concatenate([now, state], axis=1), parameters[part])
            return anp.tanh(anp.clip(seen, -STEEPEST, STEEPEST))

        state, one = np.zeros((x.shape[0], self.width), np.float32), np.ones((x.shape[0], 1), np.float32)
        for second in range(x.shape[1]):
            now = np.hstack([x[:, second], one])
            update, reset = 0.5 + 0.5 * bent("update", now, state), 0.5 + 0.5 * bent("reset", now, state)
            state = state + update * (bent("fresh", now, reset * state) - state)
        return self._head(parameters, state)
