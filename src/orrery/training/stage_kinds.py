"""How many layers of each kind a pipeline stage holds.

Mixtures begin with a few dense layers, which stand on the first stage alone (in its first chunk): the others hold
nothing but layers with experts, and the fullest is one of them. Kinds that alternate are on every stage in proportion.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.units import Units
from orrery.training.columns import Columns
from orrery.training.stage_layers import StageLayers

Floats = NDArray[np.float64]

Counts = tuple[Floats, ...]
"""Layers of each kind, in the model's order; arrays of the layouts."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StageKinds:
    """Layers of each kind on the first stage, on the second, and on the last."""

    first: Counts
    middle: Counts
    last: Counts

    def mixed(self, half: Floats) -> "StageKinds":
        """Where ranks hold a stage of either end: the mean of both, twice."""
        pairs = tuple(zip(self.first, self.last, strict=True))
        return StageKinds(
            first=tuple(a + half * (b - a) for a, b in pairs),
            middle=self.middle,
            last=tuple(b + half * (a - b) for a, b in pairs),
        )


def stage_kinds(found: Units, x: Columns, layers: StageLayers) -> StageKinds:
    """Layers by kind and layout: chunks begin at 0, after the first stage's, and at the last stage's first chunk."""
    each = found.num_layers / x.vp
    return StageKinds(
        first=kinds_from(found, 0.0 * layers.num_first, layers.num_first, x.vp),
        middle=kinds_from(found, layers.num_first / x.vp, layers.num_middle, x.vp),
        last=kinds_from(found, each - layers.num_last / x.vp, layers.num_last, x.vp),
    )


def kinds_from(found: Units, start: Floats, layers: Floats, vp: NDArray[np.int64] | int) -> Counts:
    """Layers of each kind on stages of ``layers`` layers whose first of ``vp`` chunks begins at layer ``start``."""
    counts = [float(count) for count, _ in found.kinds]
    leading = found.job.model.num_leading_dense_layers
    if not leading:
        return tuple(layers * (count / found.num_layers) for count in counts)
    dense = np.clip(leading - start, 0.0, layers / vp)
    rest = (layers - dense) / (found.num_layers - leading)
    return (dense, *(rest * count for count in counts[1:]))
