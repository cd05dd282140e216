"""Lengths of training documents: many short ones, and a few long ones that hold much of the text."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTail:
    """Lognormal: median times e^(spread z), whole tokens, cut at the context length of the training."""

    median_tokens: float
    spread_ratio: float  # standard deviation of the logarithm
    most_tokens: int

    def __post_init__(self) -> None:
        if not (self.median_tokens >= 1.0 and self.spread_ratio >= 0.0 and self.most_tokens >= 1):
            raise ScenarioError(
                f"lengths: got median {self.median_tokens:g}, spread {self.spread_ratio:g}, at most "
                f"{self.most_tokens} tokens; write a median and a limit of at least 1, and no negative spread."
            )

    def batch(self, num_tokens: float, seed: int = 0) -> Ints:
        """Documents in order of arrival until they hold that many tokens; the last one is cut to fit."""
        draw, found, total = stream(seed, "sequences/lengths"), list[Ints](), 0
        mean = min(self.median_tokens * math.exp(self.spread_ratio**2 / 2.0), float(self.most_tokens))
        while total < num_tokens:
            count = math.ceil(1.0 + num_tokens / mean)
            normals = draw.standard_normal(count)
            drawn = np.clip(np.rint(self.median_tokens * np.exp(self.spread_ratio * normals)), 1, self.most_tokens)
            found.append(drawn.astype(np.int64))
            total += int(found[-1].sum())
        lengths = np.concatenate(found)
        count = int(np.searchsorted(np.cumsum(lengths), num_tokens)) + 1
        lengths = lengths[:count]
        lengths[-1] -= int(lengths.sum()) - int(num_tokens)
        return lengths
