"""Casts by format name, and the random Hadamard rotation that two operands of a product share."""

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.numerics.learning.linear import Array, Cast, Mix, exact, unmixed
from orrery.numerics.parse import parse_format
from orrery.numerics.quantise import round_trip
from orrery.numerics.rotations.hadamard import signs, transform
from orrery.numerics.rounding import Rounding

UNROUNDED = ("", "fp32")
"""Formats that leave an operand as it is."""


def cast_to(format_name: str, rounding: Rounding | str = Rounding.NEAREST_EVEN) -> Cast:
    """The cast to a format and back, its scales along the last axis."""
    if format_name in UNROUNDED:
        return exact
    parsed, how = parse_format(format_name), Rounding(rounding)

    def cast(a: Array, rng: np.random.Generator) -> Array:
        return round_trip(a, parsed, rounding=how, rng=rng)

    return cast


def random_hadamard(block: int) -> Mix:
    """Signs drawn afresh, then the Hadamard transform of every ``block`` elements; none where ``block`` is 0."""
    if block == 0:
        return unmixed

    def mix(a: Array, b: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        if a.shape[-1] % block:
            raise ScenarioError(
                f"hadamard: a product sums over {a.shape[-1]} elements, no multiple of {block}; "
                "write a smaller block, or leave this layer exact."
            )
        flip = np.tile(signs(block, rng), a.shape[-1] // block)
        return transform(a * flip, block), transform(b * flip, block)

    return mix
