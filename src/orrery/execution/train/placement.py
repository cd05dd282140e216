"""Where the experts of a layer stand, and what follows: the fullest rank's load, and what a technique moves or copies.

A rank has as many slots as any other, each with an expert or a copy of one; the copies of an expert share its tokens
evenly. Everybody waits for the fullest rank in every layer. Techniques of ``execution.expert_placement`` say which
expert stands in which slot, and change a step through nothing else: by the loads of the ranks, by the room and the
products of more slots, by the gradients that copies sum once a step, and by the state that moves when experts do.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import ExtensionPoint, knob_array
from orrery.execution.train import techniques
from orrery.execution.train.job import TrainingJob
from orrery.execution.train.loads import Floats, Ints, fullest, shares_of, within_capacity
from orrery.kernels.ops import Popularity
from orrery.models.model import Experts

PLACEMENTS = ExtensionPoint(name="execution.expert_placement", folder=techniques, noun="expert placement")

IN_ORDER = "in-order"
"""The first experts on the first rank, and so on: what frameworks do."""


@dataclass(frozen=True, eq=False)
class Standing:
    """Slots of one layer over ``num_ranks`` ranks, the first rank's first: a row for each way loads may fall."""

    expert: Ints  # of each slot; (rows, slots)
    share: Floats  # rows that each slot gets, over the layer's assignments; (rows, slots)
    num_experts: int
    num_ranks: int
    sent_ratio: float = 1.0  # rows of all slots over the layer's assignments
    kept_frac: float = 1.0  # of the assignments, those that no capacity drops

    @property
    def slots_each(self) -> int:
        """Experts and copies that a rank holds."""
        return self.expert.shape[1] // self.num_ranks

    @cached_property
    def fullest_ratio(self) -> float:
        """Rows of the fullest rank over the assignments of the mean rank."""
        return max(self.num_ranks * float(fullest(self.share, self.num_ranks).mean()), self.sent_ratio)

    @cached_property
    def _is_here(self) -> NDArray[np.bool_]:
        """Whether a rank has an expert; (rows, ranks, experts)."""
        rows, slots = self.expert.shape
        here = np.zeros((rows, self.num_ranks, self.num_experts), dtype=np.bool_)
        here[np.arange(rows)[:, None], np.arange(slots)[None, :] // self.slots_each, self.expert] = True
        return here

    @cached_property
    def moved_frac(self) -> float:
        """Share of a rank's slots whose expert came from another rank; of the rank with most."""
        home = np.arange(self.num_experts) // (self.num_experts // self.num_ranks)
        came = self._is_here & (home[None, None, :] != np.arange(self.num_ranks)[None, :, None])
        return float(came.sum(axis=2).max(axis=1).mean()) / self.slots_each

    @cached_property
    def copied_frac(self) -> float:
        """Share of a rank's slots whose expert also stands on another rank; of the rank with most."""
        copied = self._is_here & (self._is_here.sum(axis=1, keepdims=True) > 1)
        return float(copied.sum(axis=2).max(axis=1).mean()) / self.slots_each

    @cached_property
    def num_copies(self) -> int:
        """Ranks that have the expert with most copies, itself counted."""
        return round(float(self._is_here.sum(axis=1).max(axis=1).mean()))


def standing(job: TrainingJob, experts: Experts, num_ranks: int) -> Standing:
    """Standing of the experts of one layer, dealt over ``num_ranks`` ranks."""
    law = job.expert_loads or Popularity(is_dealt=True)
    name, knobs = job.expert_placement or IN_ORDER, job.placement_knobs
    limit = job.expert_capacity_ratio, job.pads_experts
    return _standing(experts.num_experts, experts.experts_per_token, law, limit, num_ranks, name, knobs)


@lru_cache(maxsize=1024)
def _standing(
    num_experts: int,
    experts_per_token: int,
    law: Popularity,
    limit: tuple[float, bool],
    num_ranks: int,
    name: str,
    knobs: tuple[tuple[str, float], ...],
) -> Standing:
    chosen = shares_of(num_experts, experts_per_token, law)
    share = within_capacity(chosen, *limit)
    if num_ranks == 1:
        name, knobs = IN_ORDER, ()
    technique = PLACEMENTS.get(name)
    expert: Ints = technique.rule(share, num_ranks, knob_array(technique, **dict(knobs)))
    row = np.arange(len(share))[:, None]
    copies = np.zeros(share.shape)
    np.add.at(copies, (np.broadcast_to(row, expert.shape), expert), 1.0)
    is_limited = limit[0] > 0.0
    return Standing(
        expert=expert,
        share=share[row, expert] / copies[row, expert],
        num_experts=num_experts,
        num_ranks=num_ranks,
        sent_ratio=float(share.sum(axis=1).mean()) if is_limited else 1.0,
        kept_frac=float(within_capacity(chosen, limit[0], False).sum(axis=1).mean()) if is_limited else 1.0,
    )


def by_ranks(job: TrainingJob, experts: Experts, ep: Ints, name: str) -> Floats:
    """One of the numbers of ``Standing`` for each of ``ep``."""
    out = np.zeros(ep.shape)
    for ranks in set(ep.tolist()):
        out[ep == ranks] = getattr(standing(job, experts, ranks), name)
    return out


def is_in_order(job: TrainingJob) -> bool:
    """Whether no technique moves or copies experts."""
    return job.expert_placement in ("", IN_ORDER)
