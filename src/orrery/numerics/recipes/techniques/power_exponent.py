"""Power exponent: both tensors raised to one searched power before they are rounded, back after they are read.

sign(x) |x|^a lies on the scheme's even grid, so that its levels crowd about zero where a is below one. Weights and
activations share the exponent: |x w|^a = |x|^a |w|^a, so a product of codes stands for the product of the numbers.
(NUPES, arXiv 2308.05600; PowerQuant, Yvinec et al. 2023, for the search.)
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.power_exponent import raised, searched_exponent
from orrery.numerics.recipes.grid import Around, Element, Fitted, Floats, Towards
from orrery.numerics.recipes.prepared import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerExponent:
    """The exponent; 0 = the one with the least relative error of weights and activations together."""

    exponent: float = 0.0

    def __post_init__(self) -> None:
        check_range(self, "exponent", 0.0, 2.0)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PowerPoints:
    """The points whose powers are another element's."""

    element: Element
    exponent: float

    def __call__(self, values: Floats, towards: Towards) -> Floats:
        """Each value's point: its power's, taken back. Powers keep the order, so sides stay sides."""
        return raised(self.element(raised(values, self.exponent), towards), 1.0 / self.exponent)


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerGrid(Around):
    """Another grid, for the powers of values."""

    exponent: float

    def fit(self, values: Floats, clip_ratio: float = 1.0) -> Fitted:
        """The other grid's scales for the powers, taken back."""
        fitted = self.grid.fit(raised(values, self.exponent), clip_ratio**self.exponent)
        scale = raised(fitted.scale, 1.0 / self.exponent)
        return Fitted(scale=scale, element=PowerPoints(element=fitted.element, exponent=self.exponent))


def rule(prepared: Prepared, knobs: PowerExponent, rng: np.random.Generator) -> Prepared:
    """The scheme's grids for powers of the values, with one exponent for both."""
    retained = prepared.scheme
    tensors = [
        (grid, x) for grid, x in ((retained.weights, prepared.weights), (retained.activations, prepared.inputs)) if grid
    ]

    def loss(exponent: float) -> float:
        return sum(_error_frac(PowerGrid(grid=grid, exponent=exponent), x) for grid, x in tensors)

    exponent = knobs.exponent or searched_exponent(loss)
    return prepared.with_grids(
        weights=retained.weights and PowerGrid(grid=retained.weights, exponent=exponent),
        activations=retained.activations and PowerGrid(grid=retained.activations, exponent=exponent),
    )


def _error_frac(grid: PowerGrid, values: Floats) -> float:
    """Squared error over squared size."""
    error = grid.fit(values).round(values) - values
    return float(np.square(error).sum() / (np.square(values, dtype=np.float64).sum() or 1.0))


TECHNIQUE = Technique(
    name="power-exponent",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=PowerExponent,
    gains="lower error than even steps of the same bits on bell-shaped and heavy-tailed tensors",
    costs="every product of codes passes a small table before it is summed; plain integer matrix units cannot do that",
    claims=("yvinec-2023-nupes",),
)
