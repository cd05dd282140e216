"""Bit by bit: p-bit weights times q-bit activations as p q products of single bits, put together by shifts.

A bit b of a bipolar integer counts 2 b - 1, so p bits hold the odd numbers from -(2^p - 1) to 2^p - 1, and an
unsigned code u is 2 u - (2^p - 1). The product of two such bits is -1 where they differ: over k inputs it adds up to
k - 2 popcount(x xor y), which one-bit matrix units answer. Bipolar codes have no sign bit, so all p q passes are alike.

    sum of a' w' = sum over i, j of 2^(i + j) (k - 2 popcount(a_i xor w_j)),   a' = 2 a + 1,   w' = 2 q - (2^p - 1)

What the zero and the odd shift add is recovered from sums over rows. Ma, Fang, Shao, Wang: "Efficient Arbitrary
Precision Acceleration for Large Language Models on GPU Tensor Cores", arXiv 2409.17870.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.matmul import Counts, FewBitWeights, Floats, Ints, Product, by_group, checked


@dataclass(frozen=True, slots=True, kw_only=True)
class BitDecomposedKnobs:
    """Bits of the activations, which are whole numbers from -2^(bits - 1) to 2^(bits - 1) - 1."""

    activation_bits: int = 8

    def __post_init__(self) -> None:
        check_range(self, "activation_bits", 1, 16)


def bipolar(codes: Ints, bits: int) -> NDArray[np.int64]:
    """The odd numbers that unsigned codes stand for."""
    return 2 * codes.astype(np.int64) - ((1 << bits) - 1)


def rule(activations: Floats, weights: FewBitWeights, knobs: BitDecomposedKnobs) -> Product:
    """One pass for every pair of bits, shifted into a sum; then zeros and scales of every group."""
    p, q = weights.bits, knobs.activation_bits
    unsigned = _unsigned(checked(activations, weights), q)
    a, w = by_group(unsigned, weights), by_group(weights.codes, weights)
    k = weights.group_elements
    sums = sum(
        (k - 2 * _differing(_plane(a, i), _plane(w, j))) << (i + j) for i in range(q) for j in range(p)
    )  # (tokens, outputs, groups)
    # weight = scale (w' + offset) / 2 with offset = 2^p - 1 - 2 zero, activation = (a' - 1) / 2
    offset = ((1 << p) - 1) - 2.0 * weights.zeros
    a_sum = bipolar(a, q).sum(axis=-1)[:, None, :]
    w_sum = bipolar(w, p).sum(axis=-1)
    values = (weights.scales / 4.0 * (sums + offset * (a_sum - k) - w_sum)).sum(axis=-1)
    results = len(a) * weights.scales.size
    counts = Counts(
        num_one_bit_passes=p * q,
        num_one_bit_multiply_adds=p * q * len(a) * weights.codes.size,
        num_shifts=p * q * results,
        num_adds=(p * q + 2) * results,
        num_scalings=results,
    )
    return Product(values=values, counts=counts)


def _unsigned(activations: Floats, bits: int) -> NDArray[np.int64]:
    """Whole numbers of ``bits`` bits, moved up to start at zero."""
    half = 1 << (bits - 1)
    whole = np.rint(activations).astype(np.int64)
    if np.any(whole != activations) or whole.min(initial=0) < -half or whole.max(initial=0) >= half:
        raise ScenarioError(f"activations: write whole numbers from {-half} to {half - 1}, which {bits} bits hold.")
    return whole + half


def _plane(codes: Ints, bit: int) -> NDArray[np.uint8]:
    """One bit of every code, eight to a byte along the last axis."""
    return np.packbits(((codes >> bit) & 1).astype(np.uint8), axis=-1)


def _differing(a: NDArray[np.uint8], w: NDArray[np.uint8]) -> NDArray[np.int64]:
    """How many bits of every pair of rows differ: (tokens, outputs, groups)."""
    return np.stack([np.bitwise_count(row ^ w).sum(axis=-1, dtype=np.int64) for row in a])


TECHNIQUE = Technique(
    name="matmul-bit-decomposed",
    extension_point="numerics.matmul",
    rule=rule,
    knobs=BitDecomposedKnobs,
    gains="Any pair of widths runs on one-bit matrix units, exactly; memory holds no unused bits.",
    costs="Passes grow with the product of both widths, and every pass leaves a result to shift and add.",
    claims=("bipolar-int-apmm",),
    command="orrery kernel gemm --device NAME --m N --n N --k N --weights bipolar2 --activations bipolar2",
)
