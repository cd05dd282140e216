"""Adam: steps along a running mean of gradients, each number's scaled by a running size of its own. [kingma-2015]"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MEAN_DECAY, SQUARE_DECAY = 0.9, 0.99
"""The second is shorter than usual, since runs are short."""

TINY = 1e-12
"""Added to the size of a gradient, so that none is divided by zero."""


class Adam:
    """The state of one array of parameters, and the size of its steps."""

    def __init__(self, rate: float) -> None:
        self.rate, self.num_steps = rate, 0
        self.mean: Floats = np.zeros(())
        self.square: Floats = np.zeros(())

    def step(self, gradient: Floats) -> Floats:
        """Change to subtract from the parameters."""
        self.num_steps += 1
        self.mean = MEAN_DECAY * self.mean + (1.0 - MEAN_DECAY) * gradient
        self.square = SQUARE_DECAY * self.square + (1.0 - SQUARE_DECAY) * gradient**2
        mean = self.mean / (1.0 - MEAN_DECAY**self.num_steps)
        square = self.square / (1.0 - SQUARE_DECAY**self.num_steps)
        return self.rate * mean / (np.sqrt(square) + TINY)
