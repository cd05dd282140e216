"""Fixed point with learned binary points: those of activations and weights, and the weights, follow the output's error.

Every step casts both tensors to words of a fixed width, compares the product with the exact output, and moves weights
and points along the straight-through gradients of the casts. Weights may be held to a few signed powers of two, which
a circuit multiplies by with shifts alone. The points of least error after training are where it starts, and what it
keeps where it finds nothing better. (QFX, arXiv 2401.17544.)
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.numerics.adam import Adam
from orrery.numerics.fixed_point.cast import Floats, codes_of, least_error_point, with_gradients, word
from orrery.numerics.fixed_point.powers import few_powers
from orrery.numerics.recipes.format_grid import grid
from orrery.numerics.recipes.prepared import Prepared

JUDGES = 4
"""One token in so many takes no part in the steps and judges them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Qfx:
    """The words, and how long and fast weights and points learn."""

    width_bits: int = 8
    num_powers: int = 0  # signed powers of two that make up a weight; 0 = any weight of the word
    num_steps: int = 200
    rate_frac: float = 0.003  # of the weights' root mean square, a step
    point_bits: float = 0.03  # that a point moves in a step

    def __post_init__(self) -> None:
        check_range(self, "width_bits", 2, 16)
        check_range(self, "num_powers", 0, 16)
        check_range(self, "num_steps", 0, 1_000_000)
        check_above(self, "rate_frac", 0.0)
        check_above(self, "point_bits", 0.0)


def rule(prepared: Prepared, knobs: Qfx, rng: np.random.Generator) -> Prepared:
    """The layer in fixed point; the scheme's grids are replaced."""
    x, weights = prepared.inputs.astype(np.float64), prepared.weights.astype(np.float64)
    points = np.array(
        [least_error_point(x, knobs.width_bits), least_error_point(weights, knobs.width_bits)], dtype=float
    )
    weights, points = _learned(x, weights, points, knobs)
    formats = [f"fixed{knobs.width_bits}_{int(p)}/none" for p in np.rint(points)]
    placed = prepared.with_grids(activations=grid(formats[0]), weights=grid(formats[1]))
    return placed.with_rounded(_stored(weights, points[1], knobs))


def _learned(x: Floats, weights: Floats, points: Floats, knobs: Qfx) -> tuple[Floats, Floats]:
    """The weights and points on the way with the least error on the tokens that no step has followed."""
    targets, size = x @ weights.T, float(np.sqrt(np.square(weights).mean())) or 1.0
    along, moving = Adam(knobs.rate_frac * size), Adam(knobs.point_bits)
    is_judge = np.arange(len(x)) % JUDGES == 0
    best, least = (weights, points), np.inf
    for i in range(knobs.num_steps + 1):
        cast_x, back_x = with_gradients(x, word(knobs.width_bits, round(points[0])))
        _, back_weights = with_gradients(weights, word(knobs.width_bits, round(points[1])))
        stored = _stored(weights, points[1], knobs)
        error = cast_x @ stored.T - targets
        if (loss := float(np.square(error[is_judge]).sum())) < least:
            best, least = (weights, points), loss
        error[is_judge] = 0.0
        d_weights, d_place = back_weights(error.T @ cast_x)
        d_points = np.array([back_x(error @ stored)[1], d_place])
        left = 1.0 - i / (knobs.num_steps + 1)
        weights, points = weights - left * along.step(d_weights), points - left * moving.step(d_points)
    return best


def _stored(weights: Floats, point: float, knobs: Qfx) -> Floats:
    """The words of the weights, as numbers."""
    codes = codes_of(weights, word(knobs.width_bits, round(point)))
    retained = few_powers(codes, knobs.num_powers) if knobs.num_powers else codes
    return np.ldexp(retained.astype(np.float64), -round(point))


TECHNIQUE = Technique(
    name="qfx",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=Qfx,
    gains="no scales at all, only shifts; weights make up for what the points cannot hold",
    costs="one step for a whole tensor, so features of very different size need wide words; hundreds of gradient steps",
    claims=("dai-2024-qfx",),
)
