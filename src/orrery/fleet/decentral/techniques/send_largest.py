"""The largest numbers, with their positions."""

import math
from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.fleet.decentral.compressor import NUMBER_BITS, Floats, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestKnobs:
    """Which part of the numbers travels."""

    kept_frac: float = 0.1

    def __post_init__(self) -> None:
        check_range(self, "kept_frac", 1e-6, 1.0)


def rule(vector: Floats, knobs: LargestKnobs, draw: np.random.Generator) -> Message:
    """The k largest of d numbers: biased, but the error is at most 1 - k / d of the whole."""
    del draw
    retained = max(1, round(knobs.kept_frac * vector.size))
    picked = np.argpartition(np.abs(vector), vector.size - retained)[vector.size - retained :]
    received = np.zeros_like(vector)
    received[picked] = vector[picked]
    return Message(received=received, num_bits=(NUMBER_BITS + math.ceil(math.log2(vector.size))) * retained)


TECHNIQUE = Technique(
    name="send-largest",
    extension_point="fleet.compressor",
    rule=rule,
    knobs=LargestKnobs,
    gains="The part of the bytes that matters most.",
    costs="Biased: without a memory of what was left out it need not converge; positions travel too.",
    claims=("masha-2022",),
)
