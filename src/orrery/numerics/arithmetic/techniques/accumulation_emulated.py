"""Sums as a device's matrix or vector units take them: groups of products, guard bits, tiles, splits and lanes."""

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.accumulation import Platform, product
from orrery.numerics.arithmetic.computed import Array


def rule(x: Array, weights: Array, knobs: Platform) -> Array:
    """x W^T in float32, for operands (rows, inner) and (outputs, inner)."""
    return product(x, weights, knobs)


TECHNIQUE = Technique(
    name="emulated-accumulation",
    extension_point="numerics.accumulation",
    rule=rule,
    knobs=Platform,
    gains="The last bits of a product as a given device and library would give them.",
    costs="Slow: every group of products is aligned and cut by itself.",
    claims=("fasi-2021", "hspi"),
)
