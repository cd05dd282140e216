"""Features sorted by magnitude, so that outliers share blocks; the order goes into the weights ahead of time.

A block of a shared-exponent format is as coarse as its largest element needs. Sums do not care about the order of
their terms, so features may stand in any order that both operands agree on: sorted, the large ones spoil one block
and not all. For keys of attention the order is folded into the rows of the key and query projections (Trukhanov and
Soloveychik, Accurate Block Quantization in LLMs with Outliers, arXiv 2403.20137).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.technique import Technique
from orrery.numerics.recipes.basis import Reorder
from orrery.numerics.recipes.grid import Floats
from orrery.numerics.recipes.prepared import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class Rearrange:
    """Whether the layer before can hand its features over in the new order."""

    is_folded: bool = True


def by_magnitude(values: Floats) -> NDArray[np.intp]:
    """The columns from the largest to the smallest, by their root mean square; equal ones keep their order."""
    return np.argsort(-np.square(values, dtype=np.float64).sum(axis=0), kind="stable")


def rearrange(prepared: Prepared, knobs: Rearrange, rng: np.random.Generator) -> Prepared:
    """The layer with its features sorted by the calibration activations."""
    return prepared.with_step(Reorder(order=by_magnitude(prepared.inputs), is_folded=knobs.is_folded))


TECHNIQUE = Technique(
    name="rearrange",
    extension_point="numerics.recipe",
    rule=rearrange,
    knobs=Rearrange,
    gains="outlier features share blocks, so that the others keep fine steps; free when it runs",
    costs="helps only where outliers keep to their features, and not where one scale spans all of them",
    claims=("trukhanov-2024-bfp",),
)
