"""Local SGD: every replica takes several steps of its own, then all average their parameters."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.training.replica import Replica, Round, rounds_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStepsKnobs:
    """``num_steps`` between two averages."""

    num_steps: int = 12

    def __post_init__(self) -> None:
        check_range(self, "num_steps", 1, 100_000)


def rule(replica: Replica, knobs: LocalStepsKnobs) -> Round:
    """tau steps, then one all-reduce of the parameters for which everybody waits. [stich-2019]"""
    sent = replica.num_parameters * replica.weight_bytes
    exposed_s = replica.all_reduce_s(sent)
    return rounds_of(replica, knobs.num_steps, exposed_s, sent_bytes=sent, num_rounds_stale=0, extra_bytes=0.0)


TECHNIQUE = Technique(
    name="local-sgd",
    extension_point="training.local_updates",
    rule=rule,
    knobs=LocalStepsKnobs,
    gains="One exchange for tau steps, so its time counts a tau-th.",
    costs="Replicas drift apart between averages; the exchange that is left hides behind nothing.",
    claims=("stich-2019",),
)
