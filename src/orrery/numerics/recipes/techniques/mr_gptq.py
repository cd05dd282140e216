"""Micro-rotated GPTQ: a Hadamard matrix on every block that shares a scale, searched scales, then GPTQ."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.numerics.recipes.basis import BlockRotation
from orrery.numerics.recipes.compensated import Compensation, round_compensated
from orrery.numerics.recipes.prepared import Prepared
from orrery.numerics.recipes.searched import Searched, clips
from orrery.numerics.rotations.hadamard import matrix


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroRotated:
    """``block_channels`` is rotated together; ``num_clips`` scales are tried for every block of weights.

    The columns with the largest inputs are rounded first while every weight keeps its place: scales are settled before.
    """

    block_channels: int = 32
    least_ratio: float = 0.5
    num_clips: int = 15
    damping_frac: float = 0.01
    is_act_order: bool = True

    def __post_init__(self) -> None:
        check_range(self, "block_channels", 1, 65536)
        check_range(self, "least_ratio", 0.01, 1.0)
        check_range(self, "num_clips", 1, 1000)
        check_above(self, "damping_frac", 0.0)


def rule(prepared: Prepared, knobs: MicroRotated, rng: np.random.Generator) -> Prepared:
    """W H in blocks, scales with the least squared error on the format's own grid of scales, columns compensated.

    The activations are rotated by the same small matrix when the layer runs, in the kernel that rounds them.
    [Egiazarian et al. 2025, Bridging the gap, section 4; the authors' FP-Quant and QuTLASS for blocks of 16 to 128
    and the static order]
    """
    step = BlockRotation(matrix=matrix(knobs.block_channels), is_kept=False)
    rotated = prepared.with_step(step)
    if (grid := rotated.scheme.weights) is None:
        return rotated.rounded()
    fitted = Searched(grid=grid, clip_ratios=clips(knobs.least_ratio, knobs.num_clips)).fit(rotated.weights)
    how = Compensation(damping_frac=knobs.damping_frac, is_act_order=knobs.is_act_order)
    return rotated.with_rounded(round_compensated(rotated.weights, fitted, rotated.on_grid(rotated.inputs), how))


TECHNIQUE = Technique(
    name="mr-gptq",
    extension_point="numerics.recipe",
    rule=rule,
    knobs=MicroRotated,
    gains="Four-bit blocks with coarse scales come close to those with fine ones.",
    costs="A small rotation of the activations when the layer runs; where blocks are small it does not help by itself.",
    claims=("egiazarian-2025",),
)
