"""Quartet: every product in MXFP4; forward with the least error, backward without bias.

Forward: both operands pass a Hadamard rotation over 32 elements and then a projection whose power-of-two scale follows
from the block's standard deviation instead of its largest element: the power nearest to std c / 6, with c = 2.92, the
clipping point of least error for a normal law on the grid of e2m1, whose largest value is 6. (The authors' kernel takes
the power below, which clips more: it loses 2.2e-2 of the variance of normal data on average instead of 1.3e-2.) What
lies beyond 6 is clipped and noted in a mask. Backward: the gradient, and what forward multiplied, pass a rotation with
random signs and are rounded stochastically at 3/4 of their size, which never clips under a scale taken from the largest
element, and the product is divided by the 3/4 of both. Gradients of clipped elements are zero, then the forward
rotation is undone.
[castro-2025-quartet, algorithm 1; constants as in the authors' code, IST-DASLab/Quartet]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.learning.casts import random_hadamard
from orrery.numerics.learning.linear import Array, Linear, Product, Saved
from orrery.numerics.rotations.hadamard import inverse, transform
from orrery.numerics.rounding import Rounding

BLOCK = 32
"""Elements of a rotation and of a scale: one block of MXFP4."""

HIGHEST = 6.0
"""The largest value of e2m1."""

TINY = 1e-30
"""Keeps the logarithm of an empty block finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuartetKnobs:
    """Where a block is clipped, in standard deviations, and how much of its size a gradient keeps before rounding."""

    clip_ratio: float = 2.92247856
    headroom_frac: float = 0.75

    def __post_init__(self) -> None:
        check_range(self, "clip_ratio", 0.5, 10.0)
        check_range(self, "headroom_frac", 0.1, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quartet:
    """The layer; see the file's head."""

    knobs: QuartetKnobs

    def forward(self, x: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Saved]:
        """The product of both projections, which are kept with their masks."""
        x_near, x_kept = project(transform(x, BLOCK), self.knobs.clip_ratio)
        w_near, w_kept = project(transform(w, BLOCK), self.knobs.clip_ratio)
        return x_near @ w_near.T, (x_near, x_kept, w_near, w_kept)

    def backward(self, saved: Saved, dy: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Unbiased products, masked, and turned back."""
        x_near, x_kept, w_near, w_kept = saved
        product = Product(left=self._unbiased, right=self._unbiased, mix=random_hadamard(BLOCK))
        dx = product(dy, w_near.T, rng) * x_kept
        dw = product(dy.T, x_near.T, rng) * w_kept
        return inverse(dx, BLOCK), inverse(dw, BLOCK)

    def _unbiased(self, a: Array, rng: np.random.Generator) -> Array:
        """Stochastic rounding with headroom: the mean is ``a`` itself."""
        blocks = a.reshape(*a.shape[:-1], -1, BLOCK)
        top = np.abs(blocks).max(axis=-1, keepdims=True)
        unit = np.exp2(np.floor(np.log2(np.maximum(top, TINY)))) / 4.0  # the largest then lies in [4, 8)
        shrunk = round_to(blocks / unit * self.knobs.headroom_frac, "e2m1", rounding=Rounding.STOCHASTIC, rng=rng)
        return (shrunk * unit / self.knobs.headroom_frac).reshape(a.shape).astype(a.dtype)


def project(a: Array, clip_ratio: float) -> tuple[Array, NDArray[np.floating]]:
    """``a`` on MXFP4 with the scale of least error for a normal law, and 1 where nothing was clipped, else 0."""
    blocks = a.reshape(*a.shape[:-1], -1, BLOCK)
    target_std = blocks.std(axis=-1, keepdims=True) * clip_ratio / HIGHEST
    unit = np.exp2(np.rint(np.log2(np.maximum(target_std, TINY))))
    scaled = blocks / unit
    near = round_to(scaled, "e2m1") * unit
    return near.reshape(a.shape).astype(a.dtype), (np.abs(scaled) < HIGHEST).reshape(a.shape).astype(a.dtype)


def rule(knobs: QuartetKnobs) -> Linear:
    """The layer under these knobs."""
    return Quartet(knobs=knobs)


TECHNIQUE = Technique(
    name="quartet-linear",
    extension_point="numerics.linear",
    rule=rule,
    knobs=QuartetKnobs,
    gains="Every product at the rate of MXFP4, with little forward error and gradients without bias.",
    costs="Rotations before every product, noise of stochastic rounding, and lost gradients of clipped elements.",
    claims=("castro-2025-quartet",),
)
