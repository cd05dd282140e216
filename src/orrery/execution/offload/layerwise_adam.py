"""Layerwise AdamW that runs: one group of arrays learns in a step, and only its moments are at hand.

Groups take turns from the bottom up, from the top down, or in an order drawn once. The learning rate is asked for once
a round, so that all groups of a round learn at the same rate [liu-2024].
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream

Floats = NDArray[np.float64]
Order = Literal["bottom-up", "top-down", "random"]


class LayerwiseAdamW:
    """AdamW over groups of parameters, updated in place; the moments of the others are parked."""

    __slots__ = ("_beta1", "_beta2", "_decay", "_epsilon", "_order", "_parked", "_steps", "_turn")

    def __init__(
        self,
        num_groups: int,
        order: Order = "bottom-up",
        *,
        seed: int = 0,
        beta1: float = 0.9,
        beta2: float = 0.999,
        weight_decay: float = 0.0,
        epsilon: float = 1e-8,
    ) -> None:
        if num_groups < 1:
            raise ScenarioError(f"num_groups = {num_groups} in LayerwiseAdamW; write 1 or more.")
        turns = list(range(num_groups))
        if order == "top-down":
            turns.reverse()
        elif order == "random":
            turns = [int(i) for i in stream(seed, "layerwise/order").permutation(num_groups)]
        self._order, self._turn, self._steps = turns, 0, 0
        self._beta1, self._beta2, self._decay, self._epsilon = beta1, beta2, weight_decay, epsilon
        self._parked: dict[int, tuple[list[Floats], list[Floats]]] = {}

    @property
    def active(self) -> int:
        """The group that learns in the next step."""
        return self._order[self._turn]

    @property
    def rounds(self) -> int:
        """Rounds that are over: the learning rate's clock."""
        return self._steps // len(self._order)

    def step(self, parameters: Sequence[Floats], gradients: Sequence[Floats], rate: float) -> None:
        """Update the active group's arrays with their gradients, park its moments and pass the turn on."""
        first, second = self._parked.get(self.active) or (
            [np.zeros_like(p) for p in parameters],
            [np.zeros_like(p) for p in parameters],
        )
        times = self.rounds + 1
        for p, g, m, v in zip(parameters, gradients, first, second, strict=True):
            m += (1.0 - self._beta1) * (g - m)
            v += (1.0 - self._beta2) * (g * g - v)
            mean, square = m / (1.0 - self._beta1**times), v / (1.0 - self._beta2**times)
            p -= rate * (mean / (np.sqrt(square) + self._epsilon) + self._decay * p)
        self._parked[self.active] = (first, second)
        self._turn = (self._turn + 1) % len(self._order)
        self._steps += 1
