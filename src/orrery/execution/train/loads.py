"""How much more than the mean the fullest rank of experts has to do: everybody waits for it in every layer.

Loads are even unless told otherwise: routers are trained with a loss or a bias that balances them. A law of popularity
says how often each expert is chosen, not where it stands: the mean over random placements counts. A list of shares is
in the order of the experts, which stand on the ranks in that order, as frameworks place them.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.execution.train.job import TrainingJob
from orrery.kernels.moe.routing import chosen_fracs
from orrery.kernels.ops import Popularity
from orrery.models.model import Experts

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NUM_PLACEMENTS, SEED = 64, 1


def shares(job: TrainingJob, experts: Experts) -> Floats:
    """Share of a layer's assignments that each expert gets, in the order in which they stand: a row a placement."""
    return _shares(experts.num_experts, experts.experts_per_token, job.expert_loads or Popularity(is_dealt=True))


@lru_cache(maxsize=256)
def _shares(num_experts: int, experts_per_token: int, law: Popularity) -> Floats:
    if law.is_dealt or (not law.shares and law.exponent == 0.0):
        return np.full((1, num_experts), 1.0 / num_experts)
    falling = chosen_fracs(num_experts, experts_per_token, law) / min(experts_per_token, num_experts)
    if law.shares:  # back into the order of the list
        order = np.argsort(-np.array(law.shares), kind="stable")
        standing = np.empty(num_experts)
        standing[order] = falling
        return standing[None]
    generator = np.random.default_rng(SEED)
    return generator.permuted(np.tile(falling, (NUM_PLACEMENTS, 1)), axis=1)


def fullest(share: Floats, num_ranks: int) -> Floats:
    """Share of the rank with most, experts dealt out in order; one entry a row of ``share`` (rows, experts)."""
    parts = np.array_split(share, min(num_ranks, share.shape[-1]), axis=-1)
    return np.max([part.sum(axis=-1) for part in parts], axis=0)


def fullest_ratio(job: TrainingJob, experts: Experts, ep: Ints) -> Floats:
    """Assignments of the fullest of ``ep`` ranks over those of the mean rank; 1 where loads are even."""
    law = job.expert_loads or Popularity(is_dealt=True)
    out = np.ones(ep.shape)
    for ranks in set(ep.tolist()):
        out[ep == ranks] = _fullest_ratio(experts.num_experts, experts.experts_per_token, law, ranks)
    return np.maximum(out, 1.0)


@lru_cache(maxsize=4096)
def _fullest_ratio(num_experts: int, experts_per_token: int, law: Popularity, num_ranks: int) -> float:
    return num_ranks * float(fullest(_shares(num_experts, experts_per_token, law), num_ranks).mean())
