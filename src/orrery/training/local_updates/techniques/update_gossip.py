"""Gossip: each replica averages with its neighbours on a ring, and with nobody else."""

from dataclasses import dataclass

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.training.replica import Replica, Round, rounds_of


@dataclass(frozen=True, slots=True, kw_only=True)
class GossipKnobs:
    """``num_neighbours`` of each replica, and ``num_steps`` between two exchanges."""

    num_neighbours: int = 2
    num_steps: int = 1

    def __post_init__(self) -> None:
        check_range(self, "num_neighbours", 1, 1024)
        check_range(self, "num_steps", 1, 100_000)


def rule(replica: Replica, knobs: GossipKnobs) -> Round:
    """The parameters go to every neighbour, one after the other, beside a step that started before. [lian-2017]

    The weights that travel are those at the step's start, so they hide behind all of it; no cost grows with the number
    of replicas.
    """
    sent = replica.num_parameters * replica.weight_bytes
    exposed_s = replica.beside_s(knobs.num_neighbours * replica.neighbour_s(sent), knobs.num_steps * replica.step_s)
    return rounds_of(
        replica,
        knobs.num_steps,
        exposed_s,
        sent_bytes=knobs.num_neighbours * sent,
        num_rounds_stale=0,
        extra_bytes=sent,
    )


TECHNIQUE = Technique(
    name="gossip",
    extension_point="training.local_updates",
    rule=rule,
    knobs=GossipKnobs,
    gains="No collective over all replicas, so the time of a step does not grow with their number.",
    costs="What one replica learns takes many steps to reach the others; replicas never agree exactly.",
    claims=("lian-2017",),
)
