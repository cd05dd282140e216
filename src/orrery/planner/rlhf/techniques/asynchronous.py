"""Asynchronous RLHF: engines write the next batch while the trainer learns from the last one."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.memory import Infeasible
from orrery.planner.rlhf.asynchronous import asynchronous
from orrery.planner.rlhf.plan import Plan
from orrery.planner.rlhf.search import Space


@dataclass(frozen=True, slots=True, kw_only=True)
class AsynchronousKnobs:
    """How many updates a batch's weights may be behind; proposals of the search on the trainer's devices, its seed."""

    max_staleness: int = 1
    num_proposals: int = 1500
    seed: int = 0

    def __post_init__(self) -> None:
        check_range(self, "max_staleness", 0, 1000)
        check_range(self, "num_proposals", 1, 10_000_000)


def rule(space: Space, knobs: AsynchronousKnobs) -> Plan | Infeasible:
    """The split of the devices whose longer pool is shortest. [noukhovitch-2024]"""
    return asynchronous(space.job, knobs.max_staleness, knobs.num_proposals, knobs.seed)


TECHNIQUE = Technique(
    name="rlhf-asynchronous",
    word="asynchronous",
    extension_point="planner.rlhf",
    rule=rule,
    knobs=AsynchronousKnobs,
    gains="No device waits for a batch to be written, nor an engine for an update.",
    costs="Batches are written by weights of an earlier update, and engines hold a copy of their own.",
    claims=("noukhovitch-2024",),
    measure="the reward after as many updates: sequences come from an older policy",
)
