"""Sparse materialisation: parameters of the busiest experts come to all ranks, so that their tokens need not travel."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import GATHERS_EXPERTS, Technique
from orrery.execution.train.gathered import best_gathered_s
from orrery.execution.train.overlap import Floats, Pair, beside


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseMaterialisationKnobs:
    """Most experts of a layer that every rank gathers beside its own; the best number up to this is taken."""

    most_gathered: int = 8

    def __post_init__(self) -> None:
        check_range(self, "most_gathered", 0, 1024)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """k experts gathered beside the layer's other products; exchange and experts shrink with what they take over.

    What the gathers take longer than the other products, or slow them by, is added.
    """

    def added_s(gather_s: Floats) -> Floats:
        return beside(pair.other_compute_s, gather_s, pair.contention_ratio) - pair.other_compute_s

    return best_gathered_s(pair, int(knobs[0]), added_s)


TECHNIQUE = Technique(
    name="sparse-materialisation",
    extension_point="execution.expert_overlap",
    rule=rule,
    knobs=SparseMaterialisationKnobs,
    gains="The busiest expert no longer holds all ranks up, and fewer tokens travel.",
    costs="Parameters of experts travel forward and back, their gradients once; room for the gathered ones.",
    claims=("hecate-fssdp-2025",),
    traits=frozenset({GATHERS_EXPERTS}),
    measure="how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",
)
