"""Experts in order: the first of a layer on the first rank, and so on."""

import numpy as np

from orrery.base.technique import Technique
from orrery.execution.train.loads import Floats, Ints


def rule(share: Floats, num_ranks: int, knobs: Floats) -> Ints:
    """Every expert in the slot of its number. [gshard-2020]"""
    return np.tile(np.arange(share.shape[1], dtype=np.int64), (len(share), 1))


TECHNIQUE = Technique(
    name="in-order",
    extension_point="execution.expert_placement",
    rule=rule,
    gains="Nothing moves, and every expert is where its number says.",
    costs="Popular experts that stand together fill their rank, and all others wait for it.",
    claims=("gshard-2020",),
)
