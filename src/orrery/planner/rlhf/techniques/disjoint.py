"""Disjoint groups: every model on devices of its own, and engines that only write."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.catalog.frameworks import get_framework
from orrery.execution.memory import Infeasible
from orrery.planner.rlhf.baselines import disjoint
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.search import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class DisjointKnobs:
    """The framework that trains and reads."""

    framework: str = "deepspeed"


def rule(space: Space, knobs: DisjointKnobs) -> Plan | Infeasible:
    """Five groups side by side; each waits while calls that it needs run elsewhere. [hu-2024]"""
    return disjoint(space.job, get_framework(knobs.framework, space.job.cluster.device))


TECHNIQUE = Technique(
    name="rlhf-disjoint",
    word="disjoint",
    extension_point="planner.rlhf",
    rule=rule,
    knobs=DisjointKnobs,
    gains="Models never share memory; reward, reference and critic read at the same time.",
    costs="Most devices wait most of the time, and new weights travel to the engines in every iteration.",
    claims=("hu-2024",),
)
