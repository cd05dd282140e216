"""Redundancy: copies of popular experts on further ranks share their tokens."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.train.loads import Floats, Ints
from orrery.execution.train.packing import packed


@dataclass(frozen=True, slots=True, kw_only=True)
class RedundancyKnobs:
    """Copies of a layer's experts beside the experts themselves; 0 = one a rank. Rounded up to as many on each rank."""

    num_replicas: int = 0

    def __post_init__(self) -> None:
        check_range(self, "num_replicas", 0, 65536)


def rule(share: Floats, num_ranks: int, knobs: Floats) -> Ints:
    """Copies of whichever expert has most tokens a copy; then all by load over the ranks."""
    return packed(share, num_ranks, -(-(int(knobs[0]) or num_ranks) // num_ranks) * num_ranks)


TECHNIQUE = Technique(
    name="redundancy",
    extension_point="execution.expert_placement",
    rule=rule,
    knobs=RedundancyKnobs,
    gains="Experts more popular than a rank's mean no longer fill it: their tokens are shared out.",
    costs="Copies take memory and their own update, their gradients are summed once a step, and products are smaller.",
    claims=("flexmoe-2023", "eplb-2025"),
    excludes=frozenset({"sparse-materialisation", "shadowing"}),
    measure="how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",
)
