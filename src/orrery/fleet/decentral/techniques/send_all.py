"""The whole vector, as it is."""

import numpy as np

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.fleet.decentral.compressor import NUMBER_BITS, Floats, Message


def rule(vector: Floats, knobs: NoKnobs, draw: np.random.Generator) -> Message:
    """Every number."""
    del knobs, draw
    return Message(received=vector, num_bits=NUMBER_BITS * vector.size)


TECHNIQUE = Technique(
    name="send-all",
    extension_point="fleet.compressor",
    rule=rule,
    gains="Nothing is lost.",
    costs="Every number travels in every round.",
    claims=("masha-2022",),
)
