"""Pre-shifted exponent bias: each activation channel has its own exponent bias, folded into the weights beforehand."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.basis import ChannelScale
from orrery.numerics.recipes.prepared import Prepared

Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExponentBias:
    """``most_shift``: the largest bias, 2^exponent_bits - 1 of the activations' format; 3 for E2M1."""

    most_shift: int = 3

    def __post_init__(self) -> None:
        check_range(self, "most_shift", 0, 127)


def rule(prepared: Prepared, knobs: ExponentBias, rng: np.random.Generator) -> Prepared:
    """x 2^b and W 2^-b with b = round(-log2 max|x_j|) - round(-log2 max|x|), from 0 to ``most_shift``, a channel.

    A float with another exponent bias is the same float times a power of two, so that the channels' biases are a
    scaling of the channels, and the weights can take it over exactly. [Liu et al. 2023, LLM-FP4, section 4.2: the
    real-valued channel biases are split into one for the tensor and whole ones for the channels]
    """
    largest: Doubles = np.abs(prepared.inputs).max(axis=0).astype(np.float64)
    if not largest.any():
        return prepared
    bias: Doubles = -np.log2(np.where(largest > 0, largest, largest.max()))
    shift = np.clip(np.rint(bias) - np.rint(bias.min()), 0, knobs.most_shift)
    return prepared.with_step(ChannelScale(scale=np.exp2(-shift)))


TECHNIQUE = Technique(
    name="exponent-bias",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=ExponentBias,
    gains="Activation channels of very different size fit one format; free when the layer runs, and exact.",
    costs="Only powers of two, only as many as the exponent has; the weights take over the spread.",
    claims=("liu-2023",),
)
