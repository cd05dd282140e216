"""Adam: steps along a running mean of gradients, each number's scaled by a running size of its own. [kingma-2015]"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TINY = 1e-12
"""Added to the size of a gradient, so that none is divided by zero."""


@dataclass(slots=True, kw_only=True)
class Adam:
    """The state of one array of parameters."""

    rate: float
    decay_mean: float = 0.9
    decay_square: float = 0.99
    num_steps: int = 0
    mean: Floats = field(default_factory=lambda: np.zeros(()))
    square: Floats = field(default_factory=lambda: np.zeros(()))

    def step(self, gradient: Floats) -> Floats:
        """What to take off the parameters."""
        self.num_steps += 1
        self.mean = self.decay_mean * self.mean + (1.0 - self.decay_mean) * gradient
        self.square = self.decay_square * self.square + (1.0 - self.decay_square) * gradient**2
        mean = self.mean / (1.0 - self.decay_mean**self.num_steps)
        square = self.square / (1.0 - self.decay_square**self.num_steps)
        return self.rate * mean / (np.sqrt(square) + TINY)
