"""ZeRO-3 everywhere: every call on every device, each layer gathered whenever it is used."""

from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.catalog.frameworks import get_framework
from orrery.execution.memory import Infeasible
from orrery.planner.rlhf.baselines import zero3
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.search import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedKnobs:
    """The framework whose sharding it is."""

    framework: str = "deepspeed"


def rule(space: Space, knobs: ShardedKnobs) -> Plan | Infeasible:
    """All calls one after the other; a token's pass takes at least as long as gathering all layers. [yao-2023]"""
    return zero3(space.job, get_framework(knobs.framework, space.job.cluster.device))


TECHNIQUE = Technique(
    name="rlhf-zero3",
    word="zero3",
    extension_point="planner.rlhf",
    rule=rule,
    knobs=ShardedKnobs,
    gains="The least memory on each device, and nothing to choose.",
    costs="Generation gathers the whole model for every token.",
    claims=("yao-2023",),
)
