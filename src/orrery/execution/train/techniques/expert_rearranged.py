"""Experts rearranged: as many on every rank as before, popular ones beside unpopular ones."""

from orrery.base.technique import Technique
from orrery.execution.train.loads import Floats, Ints
from orrery.execution.train.packing import packed


def rule(share: Floats, num_ranks: int, knobs: Floats) -> Ints:
    """Fullest experts first, each to the emptiest rank with room; in order where that evens nothing out."""
    return packed(share, num_ranks, 0)


TECHNIQUE = Technique(
    name="rearranged",
    extension_point="execution.expert_placement",
    rule=rule,
    gains="The fullest rank comes as near to the mean as whole experts allow, in the same memory.",
    costs="Weights and optimizer states of the experts that move travel at every new placement, and need room there.",
    claims=("smartmoe-2023", "pro-prophet-2024"),
    measure="how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",
)
