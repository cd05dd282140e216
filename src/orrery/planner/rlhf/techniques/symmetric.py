"""The symmetric plan: one Megatron-like cut of the whole cluster for every call."""

from orrery.base.knobs import NoKnobs
from orrery.base.technique import Technique
from orrery.execution.memory import Infeasible
from orrery.planner.rlhf.baselines import symmetric
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.search import Space


def rule(space: Space, knobs: NoKnobs) -> Plan | Infeasible:
    """Tensor parallelism inside a node, the best number of stages, data parallelism over the rest. [narayanan-2021]"""
    del knobs
    return symmetric(space)


TECHNIQUE = Technique(
    name="rlhf-symmetric",
    word="symmetric",
    extension_point="planner.rlhf",
    rule=rule,
    gains="No parameter ever moves, and no device waits for another call than its own.",
    costs="Calls run one after the other, all with the cut that the largest one needs.",
    claims=("narayanan-2021",),
)
