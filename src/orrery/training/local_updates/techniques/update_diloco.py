"""DiLoCo: islands train synchronously inside, and meet over a slow link once in many steps."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.training.replica import Replica, Round, rounds_of

KEPT_COPIES = 2
"""Beside the weights in training: those of the last meeting, and the outer (Nesterov) momentum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DilocoKnobs:
    """``num_steps`` inner steps between two meetings (H of the paper)."""

    num_steps: int = 500

    def __post_init__(self) -> None:
        check_range(self, "num_steps", 1, 1_000_000)


def rule(replica: Replica, knobs: DilocoKnobs) -> Round:
    """H synchronous steps inside an island, then the all-reduce of the parameters' differences. [douillard-2023]"""
    inner = replica.num_parameters * replica.gradient_bytes
    outer = replica.num_parameters * replica.weight_bytes
    exposed_s = knobs.num_steps * replica.overlapped_s(replica.inside_s(inner)) + replica.all_reduce_s(outer)
    return rounds_of(
        replica,
        knobs.num_steps,
        exposed_s,
        sent_bytes=knobs.num_steps * inner + outer,
        num_rounds_stale=0,
        extra_bytes=KEPT_COPIES * outer,
    )


TECHNIQUE = Technique(
    name="diloco",
    extension_point="training.local_updates",
    rule=rule,
    knobs=DilocoKnobs,
    gains="The slow link carries the parameters once in H steps instead of the gradients in each.",
    costs="Islands drift apart for H steps; two more copies of the parameters; everybody waits at a meeting.",
    claims=("douillard-2023",),
)
