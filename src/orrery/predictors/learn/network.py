"""A perceptron: affine layers with a rectifier between them, from named arrays, in autograd's NumPy."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.predictors.learn.extra import learning_package

Array = NDArray[np.float32]
Parameters = Mapping[str, Array]


@dataclass(frozen=True, slots=True, kw_only=True)
class Perceptron:
    """h_(i+1) = max(0, h_i W_i + b_i), the last layer without the maximum; parameters are ``w0, b0, w1, …``."""

    widths: tuple[int, ...]  # features that come in, of every hidden layer, that go out

    def start(self, rng: np.random.Generator) -> dict[str, Array]:
        """Random weights of variance 2 / inputs [he-2015], and no biases."""
        found: dict[str, Array] = {}
        for i, (inputs, outputs) in enumerate(pairwise(self.widths)):
            found[f"w{i}"] = (rng.standard_normal((inputs, outputs)) * np.sqrt(2.0 / inputs)).astype(np.float32)
            found[f"b{i}"] = np.zeros(outputs, np.float32)
        return found

    def __call__(self, parameters: Mapping[str, Any], x: Any, part: str = "") -> Any:
        """The outputs for rows of ``x``, as arrays or what autograd puts in their place; ``part`` precedes names."""
        anp = learning_package("autograd.numpy")
        last = len(self.widths) - 2
        for i in range(last + 1):
            x = x @ parameters[f"{part}w{i}"] + parameters[f"{part}b{i}"]
            x = x if i == last else anp.maximum(x, 0)
        return x
