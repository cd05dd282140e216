"""SmoothQuant: outliers of the activations are moved, channel by channel, into the weights."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.basis import ChannelScale
from orrery.numerics.recipes.prepared import Prepared


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothQuant:
    """``migration_frac`` is alpha: how much of the difficulty the weights take over; 0.5 shares it."""

    migration_frac: float = 0.5

    def __post_init__(self) -> None:
        check_range(self, "migration_frac", 0.0, 1.0)


def rule(prepared: Prepared, knobs: SmoothQuant, rng: np.random.Generator) -> Prepared:
    """x / s and W s with s = max|x|^alpha / max|w|^(1 - alpha) of every channel. [Xiao et al. 2022, SmoothQuant, eq. 4]

    The division is folded into the norm before the layer. A channel that is all zero on either side is left alone.
    """
    inputs = np.abs(prepared.inputs).max(axis=0).astype(np.float64)
    weights = np.abs(prepared.weights).max(axis=0).astype(np.float64)
    is_used = (inputs > 0) & (weights > 0)
    scale = np.ones(len(inputs))
    scale[is_used] = inputs[is_used] ** knobs.migration_frac / weights[is_used] ** (1 - knobs.migration_frac)
    return prepared.with_step(ChannelScale(scale=scale))


TECHNIQUE = Technique(
    name="smoothquant",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=SmoothQuant,
    gains="Activations with outlier channels fit one scale a token or tensor; free once folded.",
    costs="Weights take over the spread; needs calibration and a layer before that can absorb the scales.",
    claims=("xiao-2022",),
)
