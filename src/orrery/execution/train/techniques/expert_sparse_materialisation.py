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

    Their tokens stay where they are, one share of them on each rank. With f the fullest rank's part of all, l that of
    the rest and s the part that stays: experts take (s/ranks + l)/f of their time, and the exchange, which waits for
    the rank that receives most, l/f of it. What the gathers take longer than the other products, or slow them by, is
    added. With even loads some rank keeps all of its own, so neither share is below 1: no gain.
    """
    best_s = pair.serial_s
    share = np.atleast_2d(np.asarray(pair.expert_share, dtype=np.float64))
    if not share.size:
        return best_s
    busiest = np.argsort(-share, axis=1, kind="stable")
    full = _fullest(share, pair.num_ranks)
    most = share.shape[1] - share.shape[1] // pair.num_ranks  # all but one rank's; whole layers are ZeRO-3's to gather
    for gathered in range(1, min(int(knobs[0]), most) + 1):
        rest = share.copy()
        np.put_along_axis(rest, busiest[:, :gathered], 0.0, axis=1)
        stays, left = float((share - rest).sum(axis=1).mean()), _fullest(rest, pair.num_ranks)
        work_s = (stays / pair.num_ranks + left) / full * (pair.compute_s + pair.backward_weight_s)
        gather_s = gathered * pair.expert_gather_s
        added_s = beside(pair.other_compute_s, gather_s, pair.contention_ratio) - pair.other_compute_s
        best_s = np.minimum(best_s, work_s + left / full * (pair.network_s + pair.inside_s) + added_s)
    return best_s


def _fullest(share: Floats, num_ranks: int) -> float:
    """Share of the tokens that the rank with most of them has, experts dealt out in order; the mean of the rows."""
    parts = np.array_split(share, num_ranks, axis=1)
    return float(np.max([part.sum(axis=1) for part in parts], axis=0).mean())


TECHNIQUE = Technique(
    name="sparse-materialisation",
    seam="execution.expert_overlap",
    rule=rule,
    knobs=SparseMaterialisationKnobs,
    gains="The busiest expert no longer holds all ranks up, and fewer tokens travel.",
    costs="Parameters of experts travel forward and back, their gradients once; room for the gathered ones.",
    claims=("hecate-fssdp-2025",),
)
