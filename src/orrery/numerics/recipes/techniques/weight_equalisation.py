"""Weight equalisation: two layers in a row share out their ranges, channel by channel."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.numerics.recipes.basis import ChannelScale
from orrery.numerics.recipes.prepared import Prepared


def rule(prepared: Prepared, knobs: NoKnobs, rng: np.random.Generator) -> Prepared:
    """W1 / s and W2 s with s = sqrt(r1 / r2), the ranges r1 and r2 of each channel in both: they become equal.

    Exact where the function between both commutes with positive scales. [Nagel et al. 2019, Data-free quantization,
    section 4.1: s = sqrt(r1 r2) / r2] A channel that is all zero on either side is left alone.
    """
    before = prepared.previous_weights
    if before is None:
        raise ScenarioError(
            "weight-equalisation: the layer names no previous_weights; give those that make its inputs."
        )
    first, second = (np.abs(w).max(axis=axis).astype(np.float64) for w, axis in ((before, 1), (prepared.weights, 0)))
    is_used = (first > 0) & (second > 0)
    scale = np.sqrt(np.divide(first, second, out=np.ones(len(first)), where=is_used))
    return prepared.with_step(ChannelScale(scale=scale))


TECHNIQUE = Technique(
    name="weight-equalisation",
    extension_point="numerics.recipe",
    rule=rule,
    gains="One scale for a whole matrix serves every channel of two layers in a row; needs no data.",
    costs="Only across functions that commute with scales, such as ReLU; activations may spread out.",
    claims=("nagel-2019",),
)
