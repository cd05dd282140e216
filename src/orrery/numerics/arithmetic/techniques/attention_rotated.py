"""Incoherent eight-bit attention: queries and keys turned by one random Hadamard rotation, a scale a block of rows."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.attention import AttentionFormat, rounded_attention
from orrery.numerics.arithmetic.computed import Array
from orrery.numerics.rotations.hadamard import matrix, signs


@dataclass(frozen=True, slots=True, kw_only=True)
class RotatedFormat(AttentionFormat):
    """The rounding, and the seed of the rotation's signs."""

    block_rows: int = 128
    seed: int = 0


def rule(q: Array, k: Array, v: Array, knobs: RotatedFormat) -> Array:
    """Attention of (…, tokens, features) with rounded operands; features must have a Hadamard matrix."""
    size = q.shape[-1]
    return rounded_attention(q, k, v, knobs, signs(size, knobs.seed)[:, None] * matrix(size))


TECHNIQUE = Technique(
    name="rotated-attention",
    extension_point="numerics.attention",
    rule=rule,
    knobs=RotatedFormat,
    gains="Outliers of queries and keys are spread over all features, so no score carries a large rounding error.",
    costs="A Hadamard transform of queries and keys, fused with the rotary embedding where there is one.",
    claims=("flashattention-3",),
)
