"""CO2: local steps go on while the last round's outer all-reduce is still under way."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.training.replica import Replica, Round, rounds_of

KEPT_COPIES = 3
"""Beside the weights in training: those at the start of the round, those in flight, and the outer momentum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Co2Knobs:
    """``num_steps`` local steps of a round (tau of the paper)."""

    num_steps: int = 12

    def __post_init__(self) -> None:
        check_range(self, "num_steps", 1, 100_000)


def rule(replica: Replica, knobs: Co2Knobs) -> Round:
    """max(tau x step, all-reduce): what comes in at a round's end is the mean of the round before. [sun-2024]

    The outer step takes that mean one round late, shrinks it by the staleness gap and clips the outer momentum; both
    are element-wise work on the parameters once a round and not charged. Kernels beside the collective run slower.
    """
    sent = replica.num_parameters * replica.weight_bytes
    exposed_s = replica.beside_s(replica.all_reduce_s(sent), knobs.num_steps * replica.step_s)
    return rounds_of(
        replica, knobs.num_steps, exposed_s, sent_bytes=sent, num_rounds_stale=1, extra_bytes=KEPT_COPIES * sent
    )


TECHNIQUE = Technique(
    name="co2",
    extension_point="training.local_updates",
    rule=rule,
    knobs=Co2Knobs,
    gains="All communication hides behind tau steps of compute, however slow the network, if tau is large enough.",
    costs="The outer update is one round old, and three more copies of the parameters are kept.",
    claims=("sun-2024",),
)
