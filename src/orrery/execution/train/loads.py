"""Distribution of a layer's assignments over its experts, and the load of the fullest rank.

Loads are even unless told otherwise: routers are trained with a loss or a bias that balances them. A law of popularity
says how often each expert is chosen, not where it stands: the mean over random placements counts. A list of shares is
in the order of the experts, which stand on the ranks in that order, as frameworks place them; so is a routing trace's,
layer by layer.

Frameworks may limit what a rank sends to one expert in a micro-batch: to a factor times what the mean expert gets. The
tokens above that are dropped, and with padding every expert gets exactly that many rows. (Switch Transformers, arXiv
2101.03961, section 2.2.)
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from orrery.kernels.moe.routing import chosen_by, chosen_fracs
from orrery.kernels.ops import Popularity

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NUM_PLACEMENTS, SEED = 64, 1


@lru_cache(maxsize=256)
def shares_of(num_experts: int, experts_per_token: int, law: Popularity) -> Floats:
    """Share of a layer's assignments that each expert gets, first to last: a row for each way they may fall."""
    if law.is_dealt or (not law.shares and not law.layers and law.exponent == 0.0):
        return np.full((1, num_experts), 1.0 / num_experts)
    if law.layers:
        rows = np.array([chosen_by(np.array(row), experts_per_token) for row in law.layers])
        return rows / min(experts_per_token, num_experts)
    falling = chosen_fracs(num_experts, experts_per_token, law) / min(experts_per_token, num_experts)
    if law.shares:  # back into the order of the list
        order = np.argsort(-np.array(law.shares), kind="stable")
        standing = np.empty(num_experts)
        standing[order] = falling
        return standing[None]
    generator = np.random.default_rng(SEED)
    return generator.permuted(np.tile(falling, (NUM_PLACEMENTS, 1)), axis=1)


def within_capacity(share: Floats, capacity_ratio: float, is_padded: bool) -> Floats:
    """Rows of each expert over all assignments, where none takes more than ``capacity_ratio`` times the mean expert's.

    What is above that is dropped; padded, every expert has as many rows as it may take. A ratio of 0 limits nothing.
    """
    if not capacity_ratio:
        return share
    capacity = capacity_ratio / share.shape[1]
    return np.full_like(share, capacity) if is_padded else np.minimum(share, capacity)


def fullest(share: Floats, num_ranks: int) -> Floats:
    """Share of the rank with most, experts dealt out in order; one entry a row of ``share`` (rows, experts)."""
    parts = np.array_split(share, min(num_ranks, share.shape[-1]), axis=-1)
    return np.max([part.sum(axis=-1) for part in parts], axis=0)
