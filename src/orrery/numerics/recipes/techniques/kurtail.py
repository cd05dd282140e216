"""A rotation learned from the activations of this layer alone, so that their tails become light; weights rotate along.

Kurtosis is minimised by gradient steps over orthogonal matrices, starting from a random Hadamard matrix. No label, no
loss of the model and no other layer is needed, so one layer's activations are all that must be at hand. (KurTail,
arXiv 2503.01483.)
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.basis import BlockRotation
from orrery.numerics.recipes.prepared import Prepared
from orrery.numerics.rotations.learned import lighter_tails


@dataclass(frozen=True, slots=True, kw_only=True)
class KurTail:
    """Fit of the rotation, and whether the layer before can apply it ahead of time."""

    block_channels: int = 0  # neighbouring features that one rotation mixes; 0 = all features of the layer
    num_steps: int = 100
    turn_ratio: float = 0.1  # arc over radius that all columns turn in the first step
    is_folded: bool = True

    def __post_init__(self) -> None:
        check_range(self, "block_channels", 0, 2**20)
        check_range(self, "num_steps", 0, 100_000)
        check_above(self, "turn_ratio", 0.0)


def kurtail(prepared: Prepared, knobs: KurTail, rng: np.random.Generator) -> Prepared:
    """The layer in the learned basis; all blocks share one rotation."""
    inputs = prepared.inputs
    block = knobs.block_channels or inputs.shape[1]
    if inputs.shape[1] % block:
        raise ScenarioError(
            f"kurtail: block_channels = {block} does not divide {inputs.shape[1]} features; write a divisor."
        )
    rows = inputs.reshape(-1, block)
    rotation = lighter_tails(rows, num_steps=knobs.num_steps, turn_ratio=knobs.turn_ratio, seed=rng)
    return prepared.with_step(BlockRotation(matrix=rotation, is_folded=knobs.is_folded))


TECHNIQUE = Technique(
    name="kurtail",
    extension_point="numerics.recipe",
    rule=kurtail,
    knobs=KurTail,
    gains="lighter tails than any fixed rotation where outliers keep to their directions, fitted one layer at a time",
    costs="calibration activations of the layer, a QR of its width each step, and a stored matrix where not folded",
    claims=("akhondzadeh-2025-kurtail",),
)
