"""Requantisation by a float scale: what integer-only inference does without."""

import numpy as np

from orrery.base.technique import Technique
from orrery.numerics.arithmetic.computed import Array
from orrery.numerics.arithmetic.dyadic import RequantiseKnobs


def rule(sums: Array, scale_ratio: float, knobs: RequantiseKnobs) -> Array:
    """INT32 sums as float32, times a float32 scale, rounded to nearest even, as symmetric codes."""
    most = (1 << (knobs.num_bits - 1)) - 1
    return np.clip(np.rint(sums.astype(np.float32) * np.float32(scale_ratio)), -most, most).astype(np.int32)


TECHNIQUE = Technique(
    name="float-requantisation",
    extension_point="numerics.requantise",
    rule=rule,
    knobs=RequantiseKnobs,
    gains="Any scale, found while the network runs if need be.",
    costs="Floating-point units and two conversions a sum; 32-bit sums lose bits beyond 24.",
    claims=("hawq-v3",),
)
