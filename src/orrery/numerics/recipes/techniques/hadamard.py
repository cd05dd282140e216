"""A random Hadamard rotation of the input features, whole or in blocks; its transpose goes into the weights.

x W^T = (x S H)(W S H)^T with random signs S. Every rotated feature is a sum over the whole block, so that one outlier
raises all of them a little and its own no more than the others: blocks that share a scale lose less. QuaRot (arXiv
2404.00456) folds it into the weights on either side; blocks of the format's own size are enough for formats with
small blocks (arXiv 2510.25602, section 4).
"""

from dataclasses import dataclass
from math import log2

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.grid import Floats
from orrery.numerics.recipes.prepared import Prepared
from orrery.numerics.rotations.hadamard import signs, transform


@dataclass(frozen=True, slots=True, kw_only=True)
class Hadamard:
    """How many neighbouring features are mixed, and whether the layer before can do it ahead of time."""

    block_channels: int = 0  # 0 = all features of the layer
    is_folded: bool = False  # the rotation of activations goes into the weights of the layer before

    def __post_init__(self) -> None:
        check_range(self, "block_channels", 0, 2**20)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HadamardStep:
    """The basis x S H, by the fast transform."""

    signs: NDArray[np.float32]
    block: int
    is_folded: bool

    def flops_per_token(self, width: int) -> float:
        """A sign and log2(block) additions an element where it is not folded."""
        return 0.0 if self.is_folded else width * (1.0 + log2(self.block))

    @property
    def num_bytes(self) -> float:
        """One bit a sign where it is not folded."""
        return 0.0 if self.is_folded else self.signs.size / 8.0

    def on_activations(self, x: Floats) -> Floats:
        """x S H, block by block."""
        return transform(x * self.signs.astype(x.dtype), self.block)

    def on_weights(self, weights: Floats) -> Floats:
        """The same: S H is orthogonal."""
        return self.on_activations(weights)


def hadamard(prepared: Prepared, knobs: Hadamard, rng: np.random.Generator) -> Prepared:
    """The layer in a random Hadamard basis."""
    width = prepared.weights.shape[1]
    step = HadamardStep(signs=signs(width, rng), block=knobs.block_channels or width, is_folded=knobs.is_folded)
    return prepared.with_step(step)


TECHNIQUE = Technique(
    name="hadamard",
    extension_point="numerics.recipe",
    rule=hadamard,
    knobs=Hadamard,
    gains="outliers are spread over all features of a block, without data and without a stored matrix",
    costs="log2(block) additions an element where the rotation cannot be folded into the layer before",
    claims=("ashkboos-2024-quarot", "chen-2025-int-vs-fp"),
)
