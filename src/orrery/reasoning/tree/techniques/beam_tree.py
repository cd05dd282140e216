"""Beam search on a tree: the best few candidates are continued equally, all others end."""

from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.reasoning.tree.grown import Front


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """``num_beams`` candidates live on; 0 takes the root of the width."""

    num_beams: int = 0

    def __post_init__(self) -> None:
        check_range(self, "num_beams", 0, float("inf"))


def continued(front: Front, width: int, knobs: Knobs) -> NDArray[np.int64]:
    """The best of all, each with an equal part of the width."""
    retained = min(knobs.num_beams or ceil(sqrt(width)), front.scores_frac.size)
    counts = np.zeros(front.scores_frac.size, dtype=np.int64)
    best = np.argsort(-front.scores_frac, kind="stable")[:retained]
    counts[best] = [width // retained + (i < width % retained) for i in range(retained)]
    return counts


TECHNIQUE = Technique(
    name="beam-tree",
    extension_point="reasoning.prune",
    rule=continued,
    knobs=Knobs,
    gains="Few paths live, so nearly all of the cache is shared.",
    costs="A beginning that scored badly once is gone, and beams grow alike.",
    claims=("snell-2024-test-time-compute",),
)
