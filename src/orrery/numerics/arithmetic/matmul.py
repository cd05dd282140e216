"""Products of activations with weights of few bits: the operands, and what a way of multiplying did and answered.

    weight = scale (code - zero), codes 0 … 2^bits - 1; scale and zero are shared by a group of inputs of one output
    answer[token, output] = sum over inputs of activation x weight

Rules at ``numerics.matmul`` differ in how they come to the answer, which counts show; ``exact`` is what all
that do not round activations must say.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]
Number = TypeVar("Number", bound=np.generic)

MAX_BITS = 8
"""Weights wider than a byte are no matter of few bits."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FewBitWeights:
    """A weight matrix as codes, and the scale and zero of every group of inputs."""

    codes: Ints  # (outputs, inputs)
    scales: Floats  # (outputs, groups)
    zeros: Floats  # (outputs, groups), in codes
    bits: int

    def __post_init__(self) -> None:
        outputs, inputs = self.codes.shape
        groups = self.scales.shape[-1]
        if self.scales.shape != (outputs, groups) or self.zeros.shape != self.scales.shape or inputs % groups:
            raise ScenarioError(
                f"weights: codes {self.codes.shape}, scales {self.scales.shape}, zeros {self.zeros.shape}; write "
                "(outputs, inputs) codes, (outputs, groups) scales and zeros, groups that divide the inputs."
            )
        if not 1 <= self.bits <= MAX_BITS:
            raise ScenarioError(f"weights: {self.bits} bits; write 1 to {MAX_BITS}.")
        if self.codes.size and not 0 <= self.codes.min() <= self.codes.max() < 1 << self.bits:
            raise ScenarioError(
                f"weights: codes {self.codes.min()} to {self.codes.max()}; write 0 to 2^{self.bits} - 1."
            )

    @property
    def group_elements(self) -> int:
        """Inputs that share a scale."""
        return self.codes.shape[1] // self.scales.shape[1]

    def dequantised(self) -> Floats:
        """The weights as numbers, in double precision."""
        scales, zeros = (np.repeat(x, self.group_elements, axis=1) for x in (self.scales, self.zeros))
        return scales * (self.codes - zeros)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Operations of a product: on numbers of several bits, on single bits, and in tables."""

    num_multiplies: int = 0
    num_adds: int = 0
    num_shifts: int = 0
    num_scalings: int = 0  # codes or sums of codes that were multiplied by a scale
    num_one_bit_multiply_adds: int = 0
    num_one_bit_passes: int = 0  # whole matrix products of single bits
    num_table_entries: int = 0
    num_lookups: int = 0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Product:
    """An answer (tokens, outputs) in double precision, and how it was reached."""

    values: Floats
    counts: Counts


def exact(activations: Floats, weights: FewBitWeights) -> Floats:
    """The product in double precision, one multiplication after the other."""
    return checked(activations, weights) @ weights.dequantised().T


def checked(activations: Floats, weights: FewBitWeights) -> Floats:
    """Activations (tokens, inputs) in double precision, if they fit the weights."""
    if activations.ndim != 2 or activations.shape[1] != weights.codes.shape[1]:
        raise ScenarioError(
            f"activations: shape {activations.shape}; write (tokens, {weights.codes.shape[1]}), as the weights' inputs."
        )
    return activations.astype(np.float64)


def by_group(matrix: NDArray[Number], weights: FewBitWeights) -> NDArray[Number]:
    """The last axis cut into the weights' groups: (rows, inputs) -> (rows, groups, group elements)."""
    return matrix.reshape(len(matrix), -1, weights.group_elements)
