"""Reward-balanced search: every candidate is continued in proportion to the exponential of its score (REBASE)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.reasoning.tree.grown import Front
from orrery.reasoning.tree.shares import by_softmax


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """``score_temperature_ratio`` of the softmax over scores between 0 and 1."""

    score_temperature_ratio: float = 0.2

    def __post_init__(self) -> None:
        check_above(self, "score_temperature_ratio", 0)


def continued(front: Front, width: int, knobs: Knobs) -> NDArray[np.int64]:
    """Shares of the width by softmax."""
    return by_softmax(front.scores_frac, width, knobs.score_temperature_ratio)


TECHNIQUE = Technique(
    name="balanced-tree",
    extension_point="reasoning.prune",
    rule=continued,
    knobs=Knobs,
    gains="Explores in proportion to promise: many ways stay open while good ones get more.",
    costs="Many paths that differ early stay alive, so that little of the cache is shared.",
    claims=("wu-2024-rebase",),
)
