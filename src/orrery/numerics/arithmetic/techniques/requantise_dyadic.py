"""Requantisation by a dyadic number: one integer product and one shift stand for a float scale."""

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array
from orrery.numerics.arithmetic.dyadic import RequantiseKnobs, nearest_dyadic, requantise


def rule(sums: Array, scale_ratio: float, knobs: RequantiseKnobs) -> Array:
    """INT32 sums times the dyadic number nearest to a scale, as symmetric codes."""
    return requantise(sums, nearest_dyadic(scale_ratio), knobs.num_bits)


TECHNIQUE = Technique(
    name="dyadic-requantisation",
    extension_point="numerics.requantise",
    rule=rule,
    knobs=RequantiseKnobs,
    gains="A network runs from end to end without a float, and every device gives the same bits.",
    costs="A 64-bit product a sum; scales are powers of two times 31-bit integers, known before the network runs.",
    claims=("hawq-v3",),
)
