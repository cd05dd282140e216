"""Gaussian weight sampling: weights are not rounded but shaken as if they were, and cast to a float format.

    w' = cast(w + r s),   s = max |w| of the block * 2^(1 - b),   r = round(n / 2), n normal

r is 0 with 68 %, else mostly +-1. Where r = 0 the cast sees the weight alone, with all the bits that the format has for
its size; where not, the sum is as large as the noise and the weight's low bits fall off: precision is annealed at
random. Noise survives the cast of the block's largest weight if s is at least half its spacing, that is for
b <= m + 2 with m mantissa bits. Backward is that of an additive noise: gradients of w' are gradients of w.
[ahn-2025-gaussian-weight-sampling; square blocks and a b that is learnt belong to the paper, here b is given]
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.learning.casts import cast_to
from orrery.numerics.learning.linear import Array, Linear, Saved


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianWeightsKnobs:
    """Bits that the noise stands for, the side of a square block, and the format of the sum."""

    noise_bits: float = 4.0
    block_elements: int = 32
    weights: str = "bf16"

    def __post_init__(self) -> None:
        check_range(self, "noise_bits", 1.0, 24.0)
        check_range(self, "block_elements", 1, 4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianWeights:
    """The layer; see the file's head."""

    knobs: GaussianWeightsKnobs

    def forward(self, x: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Saved]:
        """``x w'^T`` with a fresh sample of weights."""
        sampled = self.sample(w, rng)
        return x @ sampled.T, (x, sampled)

    def backward(self, saved: Saved, dy: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """``dy w'`` and ``dy^T x``."""
        x, sampled = saved
        return dy @ sampled, dy.T @ x

    def sample(self, w: Array, rng: np.random.Generator) -> Array:
        """One draw of the weights."""
        steps = np.rint(rng.standard_normal(w.shape) / 2.0)
        size = _block_max(w, self.knobs.block_elements) * 2.0 ** (1.0 - self.knobs.noise_bits)
        return cast_to(self.knobs.weights)((w + steps * size).astype(w.dtype), rng)


def _block_max(w: Array, side: int) -> Array:
    """The largest magnitude of every square block, at each of its elements; blocks at the edges may be cut off."""
    rows, columns = w.shape
    padded = np.pad(np.abs(w), ((0, -rows % side), (0, -columns % side)))
    most = padded.reshape(len(padded) // side, side, -1, side).max(axis=(1, 3))
    return most.repeat(side, axis=0)[:rows].repeat(side, axis=1)[:, :columns]


def rule(knobs: GaussianWeightsKnobs) -> Linear:
    """The layer under these knobs."""
    return GaussianWeights(knobs=knobs)


TECHNIQUE = Technique(
    name="gaussian-weights-linear",
    extension_point="numerics.linear",
    rule=rule,
    knobs=GaussianWeightsKnobs,
    gains="Weights that stay good when they are rounded to few bits later, without rounding them while they learn.",
    costs="A draw, an addition and a cast of every weight each step; products stay in 16 bits.",
    claims=("ahn-2025-gaussian-weight-sampling",),
    command="orrery experiment gaussian-weights",
)
