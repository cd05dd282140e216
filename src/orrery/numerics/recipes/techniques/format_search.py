"""Format search: exponent bits, mantissa bits and clip of a float, chosen by the error of the output."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.grid import Grid
from orrery.numerics.recipes.prepared import Prepared
from orrery.numerics.recipes.searched import clips
from orrery.numerics.recipes.splits import MAX_BITS, best_activations, best_weights


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSearch:
    """``num_clips`` from ``least_ratio`` of the largest magnitude up to all of it, ``num_rounds`` times."""

    least_ratio: float = 0.1
    num_clips: int = 20
    num_rounds: int = 2

    def __post_init__(self) -> None:
        check_range(self, "least_ratio", 0.001, 1.0)
        check_range(self, "num_clips", 1, 1000)
        check_range(self, "num_rounds", 1, 100)


def rule(prepared: Prepared, knobs: FormatSearch, rng: np.random.Generator) -> Prepared:
    """Grids of as many bits as the scheme's have, by ``splits``; activations get one scale for all tokens to come."""
    inputs, weights = prepared.inputs, prepared.weights
    targets = inputs @ weights.T
    weight_bits, bits = _bits(prepared.scheme.weights), _bits(prepared.scheme.activations)
    ratios = clips(knobs.least_ratio, knobs.num_clips)
    chosen = prepared
    for _ in range(knobs.num_rounds):
        if weight_bits:
            grid = best_weights(weights, chosen.on_grid(inputs), targets, weight_bits, ratios)
            chosen = chosen.with_grids(weights=grid)
        if bits:
            grid = best_activations(inputs, chosen.rounded().weights, targets, bits, ratios)
            chosen = chosen.with_grids(activations=grid)
    return chosen


def _bits(grid: Grid | None) -> int:
    """Bits of an element to search for; 0 where it is left as it is."""
    bits = 0 if grid is None else int(grid.bits_per_element)
    return bits if 2 <= bits <= MAX_BITS else 0


TECHNIQUE = Technique(
    name="format-search",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=FormatSearch,
    gains="Few bits are spent where a tensor needs them: on range or on precision.",
    costs="Calibration and a search; every tensor has a format of its own, which hardware must take.",
    claims=("liu-2023",),
)
