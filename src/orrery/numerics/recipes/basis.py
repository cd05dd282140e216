"""Exact changes of basis between activations and weights: x Wᵀ = (x T)(W T⁻ᵀ)ᵀ for any invertible T.

In another basis the same layer may suit a coarse grid better: outliers are spread out, or moved from activations to
weights.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.numerics.recipes.grid import Floats


class Step(Protocol):
    """One change of basis, and what it costs where it cannot be folded into its neighbours."""

    def flops_per_token(self, width: int) -> float:
        """Work on the activations of one token; 0 where the layer before does it for free."""
        ...

    @property
    def num_bytes(self) -> float:
        """Bytes to store beside the weights."""
        ...

    def on_activations(self, x: Floats) -> Floats:
        """x T, for (tokens, in)."""
        ...

    def on_weights(self, weights: Floats) -> Floats:
        """W T⁻ᵀ, for (out, in)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChannelScale:
    """Every channel divided by its scale in the activations and multiplied by it in the weights."""

    scale: Floats  # (in,), positive
    is_folded: bool = True  # into the norm or the layer before

    def flops_per_token(self, width: int) -> float:
        """One multiplication a channel where it is not folded."""
        return 0.0 if self.is_folded else float(width)

    @property
    def num_bytes(self) -> float:
        """The scales in 16 bits where they are not folded."""
        return 0.0 if self.is_folded else 2.0 * self.scale.size

    def on_activations(self, x: Floats) -> Floats:
        """x / s."""
        return x / self.scale.astype(x.dtype)

    def on_weights(self, weights: Floats) -> Floats:
        """W s."""
        return weights * self.scale.astype(weights.dtype)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reorder:
    """The channels in another order."""

    order: NDArray[np.intp]  # (in,): where each new channel comes from
    is_folded: bool = True

    def flops_per_token(self, width: int) -> float:
        """Moving is no arithmetic."""
        return 0.0

    @property
    def num_bytes(self) -> float:
        """32-bit places where the order is not folded into the layer before."""
        return 0.0 if self.is_folded else 4.0 * self.order.size

    def on_activations(self, x: Floats) -> Floats:
        """The columns of x in the new order."""
        return x[:, self.order]

    def on_weights(self, weights: Floats) -> Floats:
        """The columns of W in the new order."""
        return weights[:, self.order]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlockRotation:
    """An orthogonal matrix on every run of neighbouring channels, the same one or one each."""

    matrix: Floats  # (block, block), or (blocks, block, block)
    is_folded: bool = False
    is_kept: bool = True  # False: a formula makes it again

    def flops_per_token(self, width: int) -> float:
        """A product with the blocks, 2 a channel and row of a block; a butterfly would take fewer, on slower units."""
        return 0.0 if self.is_folded else 2.0 * width * self.matrix.shape[-1]

    @property
    def num_bytes(self) -> float:
        """The matrices in 16 bits."""
        return 0.0 if self.is_folded or not self.is_kept else 2.0 * self.matrix.size

    def on_activations(self, x: Floats) -> Floats:
        """x T, block by block."""
        block = self.matrix.shape[-1]
        if x.shape[-1] % block:
            raise ScenarioError(f"rotation: blocks of {block} do not divide {x.shape[-1]} channels; write a divisor.")
        parts = x.reshape(len(x), -1, block).swapaxes(0, 1)
        return np.matmul(parts, self.matrix.astype(x.dtype)).swapaxes(0, 1).reshape(x.shape)

    def on_weights(self, weights: Floats) -> Floats:
        """The same, T being orthogonal."""
        return self.on_activations(weights)
