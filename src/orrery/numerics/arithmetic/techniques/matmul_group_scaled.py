"""Dequantise last: codes are multiplied and summed over a group, and the sum is scaled once.

    sum of a s (q - z) over a group = s (sum of a q - z sum of a)

Codes of few bits need no multiplier: a q is a sum of a shifted by the places of q's set bits. MixPE, arXiv 2411.16158.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.matmul import Counts, FewBitWeights, Floats, Ints, Product, by_group, checked


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScaledKnobs:
    """Whether codes are multiplied, or shifted and added bit by bit."""

    has_multipliers: bool = False


def rule(activations: Floats, weights: FewBitWeights, knobs: GroupScaledKnobs) -> Product:
    """The sum of codes of every group, then zero and scale."""
    a = by_group(checked(activations, weights), weights)
    q = by_group(weights.codes, weights).astype(np.int64)
    sums = np.zeros((len(a), *weights.scales.shape))
    if knobs.has_multipliers:
        sums += _summed(a, q)
    else:
        for bit in range(weights.bits):
            sums += _summed(a * float(1 << bit), (q >> bit) & 1)
    values = ((sums - a.sum(axis=-1)[:, None, :] * weights.zeros) * weights.scales).sum(axis=-1)
    work, groups = len(activations) * weights.codes.size, len(activations) * weights.scales.size
    shifts = 0 if knobs.has_multipliers else work * weights.bits
    counts = Counts(
        num_multiplies=work if knobs.has_multipliers else 0,
        num_shifts=shifts,
        num_adds=(shifts or work) + 2 * groups,
        num_scalings=groups,
    )
    return Product(values=values, counts=counts)


def _summed(a: Floats, q: Ints) -> NDArray[np.float64]:
    """Products of codes added up over each group: (tokens, outputs, groups)."""
    return np.einsum("tgk,ngk->tng", a, q.astype(np.float64), optimize=True)


TECHNIQUE = Technique(
    name="matmul-group-scaled",
    extension_point="numerics.matmul",
    rule=rule,
    knobs=GroupScaledKnobs,
    gains="One scaling for a group instead of one for every element, and small units that shift and add.",
    costs="Needs units that take codes of two widths; a sum of activations beside every group.",
    claims=("mixpe",),
)
