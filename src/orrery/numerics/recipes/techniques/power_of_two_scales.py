"""Power-of-two scales: FP4 weights become FP8 by moving their exponents, without a multiplication."""

from dataclasses import dataclass

import numpy as np

from orrery.base.technique import Technique
from orrery.numerics.recipes.constrained import PowersOfTwo
from orrery.numerics.recipes.prepared import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerOfTwoScales:
    """``is_relative``: only the ratios within a row are powers of two (M2), not the scales themselves (M1)."""

    is_relative: bool = True


def rule(prepared: Prepared, knobs: PowerOfTwoScales, rng: np.random.Generator) -> Prepared:
    """The weights' scales rounded up to powers of two, or to such fractions of the row's largest.

    [Wu et al. 2023, ZeroQuant-FP, section 3: casting FP4 to FP8]
    """
    if (grid := prepared.scheme.weights) is None:
        return prepared
    return prepared.with_grids(weights=PowersOfTwo(grid=grid, is_relative=knobs.is_relative))


TECHNIQUE = Technique(
    name="power-of-two-scales",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=PowerOfTwoScales,
    gains="Weights are unpacked for wider activations by adding to exponents.",
    costs="Scales up to twice as coarse as they need be: a somewhat larger error.",
    claims=("wu-2023",),
)
