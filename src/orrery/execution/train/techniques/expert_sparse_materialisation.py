"""Sparse materialisation: parameters of the busiest experts come to all ranks, so that their tokens need not travel."""

from dataclasses import dataclass

import numpy as np

from orrery.base.knobs import check_range
from orrery.base.technique import Technique
from orrery.execution.train.overlap import Floats, Pair, beside


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseMaterialisationKnobs:
    """Most experts of a layer that every rank gathers beside its own; the best number up to this is taken."""

    most_gathered: int = 8

    def __post_init__(self) -> None:
        check_range(self, "most_gathered", 0, 1024)


def rule(pair: Pair, knobs: Floats) -> Floats:
    """k experts gathered beside the layer's other products; exchange and experts shrink with what they take over.

    Their tokens stay where they are, one share of them on each rank. With l the fullest rank's part of the rest and s
    the part that stays: experts take (s/ranks + l)/l0 of their time and the exchange (1 - s) of it. What the gathers
    take longer than the other products, or slow them by, is added.
    """
    best_s = pair.serial_s
    if not pair.expert_share:
        return best_s
    share = np.asarray(pair.expert_share, dtype=np.float64)
    busiest = np.argsort(-share, kind="stable")
    fullest = _fullest(share, pair.num_ranks)
    for gathered in range(1, min(int(knobs[0]), len(share)) + 1):
        rest = share.copy()
        rest[busiest[:gathered]] = 0.0
        stays = float(share[busiest[:gathered]].sum())
        ratio = (stays / pair.num_ranks + _fullest(rest, pair.num_ranks)) / fullest
        work_s = ratio * (pair.compute_s + pair.backward_weight_s)
        gather_s = gathered * pair.expert_gather_s
        added_s = beside(pair.other_compute_s, gather_s, pair.contention_ratio) - pair.other_compute_s
        best_s = np.minimum(best_s, work_s + (1.0 - stays) * (pair.network_s + pair.inside_s) + added_s)
    return best_s


def _fullest(share: Floats, num_ranks: int) -> float:
    """Share of the tokens that the rank with most of them has, experts dealt out in order."""
    return float(max(part.sum() for part in np.array_split(share, num_ranks)))


TECHNIQUE = Technique(
    name="sparse-materialisation",
    seam="execution.expert_overlap",
    rule=rule,
    knobs=SparseMaterialisationKnobs,
    gains="The busiest expert no longer holds all ranks up, and fewer tokens travel.",
    costs="Parameters of experts travel forward and back, their gradients once; room for the gathered ones.",
    claims=("hecate-fssdp-2025",),
)
