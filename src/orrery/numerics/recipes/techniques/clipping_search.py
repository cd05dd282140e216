"""Clipping search: every scale takes the clip with the least squared error."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.prepared import Prepared
from orrery.numerics.recipes.searched import Searched, clips


@dataclass(frozen=True, slots=True, kw_only=True)
class Clipping:
    """``num_clips`` ratios from ``least_ratio`` of the largest magnitude up to all of it."""

    least_ratio: float = 0.4
    num_clips: int = 25

    def __post_init__(self) -> None:
        check_range(self, "least_ratio", 0.01, 1.0)
        check_range(self, "num_clips", 1, 1000)


def rule(prepared: Prepared, knobs: Clipping, rng: np.random.Generator) -> Prepared:
    """The weights' grid with its scales ``searched``; whichever rounding follows uses them. [Sung et al. 2015; Banner
    et al. 2018, as recalled: clip below the largest value where that lowers the mean squared error]
    """
    if (grid := prepared.scheme.weights) is None:
        return prepared
    return prepared.with_grids(weights=Searched(grid=grid, clip_ratios=clips(knobs.least_ratio, knobs.num_clips)))


TECHNIQUE = Technique(
    name="clipping-search",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=Clipping,
    gains="Finer steps where one large value would stretch the scale for all; needs no data.",
    costs="The largest values lose most, and they may be those that matter.",
    claims=("banner-2018",),
)
