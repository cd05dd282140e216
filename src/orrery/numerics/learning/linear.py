"""A linear layer as three products, each of which may multiply something else than its exact operands.

    forward          y  = x w^T      summed over input features
    input gradient   dx = dy w       summed over output features
    weight gradient  dw = dy^T x     summed over tokens

Written as ``a b^T`` all three sum along the last axis of both operands, which is where block scales must lie for
hardware to use them. A cast is what takes an operand's place: the same values after rounding to a format.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Saved = tuple[Array, ...]
"""Tensors that a layer saves for the backward pass."""

Cast = Callable[[Array, np.random.Generator], Array]
"""An operand as the product sees it; the summed axis is the last."""

Mix = Callable[[Array, Array, np.random.Generator], tuple[Array, Array]]
"""Both operands in another basis of the summed axis, the same for both, so that their product stays."""


class Linear(Protocol):
    """Arithmetic of one linear layer; ``x`` is (tokens, in), ``w`` (out, in), ``dy`` (tokens, out)."""

    def forward(self, x: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Saved]:
        """``y``, and what the backward pass needs."""
        ...

    def backward(self, saved: Saved, dy: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """``(dx, dw)``."""
        ...


def exact(a: Array, rng: np.random.Generator) -> Array:
    """The operand itself."""
    return a


def unmixed(a: Array, b: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Both operands as they are."""
    return a, b


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """``a b^T`` of two operands that are mixed and cast first; accumulated in the arrays' own precision."""

    left: Cast = exact
    right: Cast = exact
    mix: Mix = unmixed

    def __call__(self, a: Array, b: Array, rng: np.random.Generator) -> Array:
        """The product of what the casts leave of ``a`` and ``b``."""
        a, b = self.mix(a, b, rng)
        return self.left(a, rng) @ self.right(b, rng).T


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeProducts:
    """A layer whose products are independent: each casts the exact operands again, along its own summed axis."""

    output: Product = Product()
    input_gradient: Product = Product()
    weight_gradient: Product = Product()

    def forward(self, x: Array, w: Array, rng: np.random.Generator) -> tuple[Array, Saved]:
        """``x w^T``."""
        return self.output(x, w, rng), (x, w)

    def backward(self, saved: Saved, dy: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """``dy w`` and ``dy^T x``."""
        x, w = saved
        return self.input_gradient(dy, w.T, rng), self.weight_gradient(dy.T, x.T, rng)
