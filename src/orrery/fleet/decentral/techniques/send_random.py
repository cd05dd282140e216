"""Some numbers, drawn at random and scaled up so that the mean is right."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.fleet.decentral.compressor import NUMBER_BITS, Floats, Message


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomKnobs:
    """Which part of the numbers travels."""

    kept_frac: float = 0.1

    def __post_init__(self) -> None:
        check_range(self, "kept_frac", 1e-6, 1.0)


def rule(vector: Floats, knobs: RandomKnobs, draw: np.random.Generator) -> Message:
    """k of d numbers times d / k: unbiased, with a variance of d / k - 1. Positions follow from a shared seed."""
    retained = max(1, round(knobs.kept_frac * vector.size))
    received = np.zeros_like(vector)
    picked = draw.choice(vector.size, retained, replace=False)
    received[picked] = vector[picked] * (vector.size / retained)
    return Message(received=received, num_bits=NUMBER_BITS * retained)


TECHNIQUE = Technique(
    name="send-random",
    extension_point="fleet.compressor",
    rule=rule,
    knobs=RandomKnobs,
    gains="A part of the bytes, and right in the mean.",
    costs="Noise that grows as fewer numbers travel, so steps must be smaller.",
    claims=("masha-2022",),
)
