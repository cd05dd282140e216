"""Dynamic fixed point: integer codes and one power of two for a whole tensor, multiplied in 32-bit accumulators.

value = code * 2^exponent, with the exponent such that the largest magnitude fills the codes. Products of two tensors
add their exponents. Two products of full 16-bit codes fill an INT32 accumulator, so a sum is chained: after so many
products the partial sum is spilled to a wider register and the accumulator starts anew. Das et al. 2018, "Mixed
Precision Training of Convolutional Neural Networks using Integer Operations", sections 3 and 4.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OutOfRange, ScenarioError
from orrery.numerics.arithmetic.integer import INT32_MOST

Array = NDArray[Any]

MAX_BITS = 16


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FixedPoint:
    """A tensor in dynamic fixed point."""

    codes: NDArray[np.int16]
    exponent: int

    @property
    def values(self) -> NDArray[np.float64]:
        """The real numbers, exactly."""
        return np.ldexp(self.codes.astype(np.float64), self.exponent)

    @property
    def largest_code(self) -> int:
        """The largest magnitude."""
        return int(np.abs(self.codes.astype(np.int32)).max(initial=0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Product:
    """A matrix product as the accumulators gave it."""

    sums: Array  # in steps of 2^exponent: int64 or float32, as they were spilled
    exponent: int
    num_overflows: int  # partial sums that left 32 bits
    num_spills: int  # of one sum

    @property
    def values(self) -> NDArray[np.float64]:
        """The real numbers that the sums stand for."""
        return np.ldexp(self.sums.astype(np.float64), self.exponent)


def fixed_point(x: Array, num_bits: int = MAX_BITS) -> FixedPoint:
    """A tensor in codes of ``num_bits``, rounded to nearest even, at the smallest exponent at which none saturates."""
    if not 2 <= num_bits <= MAX_BITS:
        raise ScenarioError(f"Codes of {num_bits} bits; write 2 to {MAX_BITS}.")
    largest, most = float(np.abs(x).max(initial=0.0)), (1 << (num_bits - 1)) - 1
    if not math.isfinite(largest):
        raise OutOfRange("A tensor with infinities or NaN has no exponent.")
    exponent = math.frexp(largest)[1] - (num_bits - 1)
    exponent += np.rint(np.ldexp(largest, -exponent)) > most  # the largest would round up to a power of two
    return FixedPoint(codes=np.rint(np.ldexp(x.astype(np.float64), -exponent)).astype(np.int16), exponent=int(exponent))


def safe_chain(largest: int, other_largest: int) -> int:
    """Products of codes of those magnitudes that a 32-bit accumulator holds for certain, whatever their signs."""
    return INT32_MOST // max(1, largest * other_largest)


def product(
    x: FixedPoint, weights: FixedPoint, chain: int | None = None, spill: type[np.int64] | type[np.float32] = np.int64
) -> Product:
    """x W^T with ``chain`` products in a 32-bit accumulator between spills; the longest safe chain where none is given.

    Accumulators wrap as INT32 does, and every partial sum that left 32 bits is counted. Spilled to int64 the result
    is exact as long as none did; spilled to float32 every addition of a partial sum rounds.
    """
    length = x.codes.shape[-1]
    num_chained = min(length, safe_chain(x.largest_code, weights.largest_code) if chain is None else chain)
    if num_chained < 1:
        raise ScenarioError(f"A chain of {chain} products; write 1 or more.")
    sums: Array = np.zeros((*x.codes.shape[:-1], weights.codes.shape[0]), dtype=spill)
    num_overflows = 0
    for start in range(0, length, num_chained):
        part = slice(start, start + num_chained)
        partial = x.codes[..., part].astype(np.int64) @ weights.codes[..., part].astype(np.int64).T
        wrapped = partial.astype(np.int32)
        num_overflows += int(np.count_nonzero(wrapped != partial))
        sums = sums + wrapped.astype(spill)
    return Product(
        sums=sums,
        exponent=x.exponent + weights.exponent,
        num_overflows=num_overflows,
        num_spills=math.ceil(length / num_chained),
    )
