"""Sums of gradients beside the backward pass: what a technique is told of a stage, and what it answers.

Data-parallel ranks sum the gradients of the last micro-batch while its backward pass still goes on, as far as the links
are idle then: an exchange of tokens that is itself hidden behind products keeps them busy.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GradientSum:
    """One stage's sum of gradients; arrays with one entry a layout."""

    reduce_s: Floats  # measured alone
    idle_s: Floats  # of the last backward pass, in which products run and no exchange is on the links
    last_bucket_frac: (
        Floats  # share of the gradients that is ready when the pass is over, sent in the framework's buckets
    )
    last_layer_frac: Floats  # the same, sent in pieces of any size: the layer whose pass comes last
    contention_ratio: float  # how much slower products run beside a collective; 1 = no slower

    def exposed_s(self, last_frac: Floats) -> Floats:
        """Left-over seconds of the sum, and those by which it slows products; at least its last part."""
        hidden = np.minimum(self.reduce_s, self.idle_s)
        slowed = self.reduce_s - hidden + (self.contention_ratio - 1.0) * hidden
        return np.maximum(slowed, last_frac * self.reduce_s)


Rule = Callable[[GradientSum, Floats], Floats]
"""(sum, knobs) to the seconds that the sum adds to a step."""
