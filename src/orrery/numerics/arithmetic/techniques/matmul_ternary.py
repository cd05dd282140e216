"""Weights of -1, 0 and 1: activations are added or subtracted, and nothing is multiplied but the sum by its scale.

Scalable MatMul-free Language Modeling, arXiv 2406.02528; the weights are BitNet b1.58's, arXiv 2402.17764.
"""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.arithmetic.matmul import Counts, FewBitWeights, Floats, Product, checked


def rule(activations: Floats, weights: FewBitWeights, knobs: NoKnobs) -> Product:
    """The sum of activations under a 1 less the sum of those under a -1, scaled once an output."""
    a = checked(activations, weights)
    if weights.scales.shape[1] != 1 or np.any(weights.zeros != 1) or weights.codes.max(initial=0) > 2:
        raise ScenarioError("weights: not ternary with one scale an output; round them to -1, 0 or 1 times a scale.")
    signs = weights.codes - 1
    sums = np.stack([np.where(row > 0, a, 0.0).sum(axis=1) - np.where(row < 0, a, 0.0).sum(axis=1) for row in signs])
    results = len(a) * len(signs)
    counts = Counts(num_adds=len(a) * int(np.count_nonzero(signs)), num_scalings=results)
    return Product(values=sums.T * weights.scales[:, 0], counts=counts)


TECHNIQUE = Technique(
    name="matmul-ternary",
    extension_point="numerics.matmul",
    rule=rule,
    gains="No multipliers, two bits or less a weight, and zeros cost nothing.",
    costs="Three values a weight: networks must be trained with them.",
    claims=("matmul-free-lm",),
    command="orrery kernel gemm --device NAME --m N --n N --k N --weights ternary",
)
