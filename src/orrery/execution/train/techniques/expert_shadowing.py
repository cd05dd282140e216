"""Shadowing: parameters of the busiest experts are sent to all ranks before their tokens would be."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import GATHERS_EXPERTS, Technique
from orrery.execution.train.gathered import best_gathered_s
from orrery.execution.train.overlap import Floats, Pair


@dataclass(frozen=True, slots=True, kw_only=True)
class ShadowingKnobs:
    """Most experts of a layer that are shadowed; the best number up to this is taken."""

    most_shadowed: int = 8

    def __post_init__(self) -> None:
        check_range(self, "most_shadowed", 0, 1024)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """Experts are chosen once the layer's tokens are routed, so their parameters travel while nothing computes."""
    return best_gathered_s(pair, int(knobs[0]), lambda gather_s: gather_s)


TECHNIQUE = Technique(
    name="shadowing",
    extension_point="execution.expert_overlap",
    rule=rule,
    knobs=ShadowingKnobs,
    gains="The busiest expert no longer holds all ranks up, whichever it is in this batch, and fewer tokens travel.",
    costs="Parameters of shadowed experts travel in both passes and their gradients once, hidden behind nothing.",
    claims=("fastermoe-2022",),
    traits=frozenset({GATHERS_EXPERTS}),
    measure="how unevenly tokens choose your experts, and how fast that changes (--expert-loads)",
)
