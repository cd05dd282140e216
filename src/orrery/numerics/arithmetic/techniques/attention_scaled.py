"""Eight-bit attention with one scale a tensor, or one a block of rows."""

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.attention import AttentionFormat, rounded_attention
from orrery.numerics.arithmetic.computed import Array


def rule(q: Array, k: Array, v: Array, knobs: AttentionFormat) -> Array:
    """Attention of (…, tokens, features) with rounded operands."""
    return rounded_attention(q, k, v, knobs)


TECHNIQUE = Technique(
    name="scaled-attention",
    extension_point="numerics.attention",
    rule=rule,
    knobs=AttentionFormat,
    gains="Products at the eight-bit rate and half the bytes of 16-bit attention.",
    costs="An outlier's own rounding error meets every score that it enters.",
    claims=("flashattention-3",),
)
