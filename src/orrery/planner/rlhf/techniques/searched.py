"""Parameter reallocation: every call where and how a search finds it best, and parameters moved between calls."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.memory import Infeasible
from orrery.planner.rlhf.baselines import symmetric
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.search import Space, search


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchedKnobs:
    """Proposals of each chain, and the seed of its draws."""

    num_proposals: int = 6000
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, "num_proposals", 1, 10_000_000)


def rule(space: Space, knobs: SearchedKnobs) -> Plan | Infeasible:
    """One chain from each call's fastest way alone, and one from the symmetric plan where there is one. [mei-2024]"""
    by_hand = symmetric(space)
    starts = [by_hand.placed] if isinstance(by_hand, Plan) else []
    return search(space, num_proposals=knobs.num_proposals, seed=knobs.seed, starts=starts)


TECHNIQUE = Technique(
    name="rlhf-searched",
    word="searched",
    extension_point="planner.rlhf",
    rule=rule,
    knobs=SearchedKnobs,
    gains="Generation, reading and learning each have the cut that suits them, and run side by side where they can.",
    costs="Parameters move between calls, a second copy of them is held meanwhile, and the search takes seconds.",
    claims=("mei-2024",),
)
