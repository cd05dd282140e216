"""Which expert a token takes next: routes through the layers of a model, and how often each expert follows another.

Every expert of a layer has ``num_followers`` favourites in the next one, dealt out so that each is the favourite of as
many. A token goes to one of them with ``followed_frac``, and otherwise anywhere, by the experts' popularity: a power
law of the exponent ``skew_ratio``, in an order of its own in every layer. Real routers are stickier or less, which is
why the share is an input. [exflow-2024]
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """Stickiness and skew of the routing."""

    num_experts: int
    num_layers: int
    followed_frac: float = 0.0
    num_followers: int = 1
    skew_ratio: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.followed_frac <= 1.0:
            raise ScenarioError(f"followed_frac = {self.followed_frac:g} in Affinity; write 0 to 1.")
        if not 1 <= self.num_followers <= self.num_experts:
            raise ScenarioError(
                f"num_followers = {self.num_followers} in Affinity; write 1 to {self.num_experts}, its experts."
            )


def popularity(affinity: Affinity, generator: np.random.Generator) -> Floats:
    """Share of the tokens that each expert of each layer draws where nothing is followed; layers x experts."""
    ranks = np.arange(1, affinity.num_experts + 1, dtype=np.float64)
    share = ranks**-affinity.skew_ratio / np.sum(ranks**-affinity.skew_ratio)
    return np.array([generator.permutation(share) for _ in range(affinity.num_layers)])


def followers(affinity: Affinity, generator: np.random.Generator) -> Ints:
    """Favourites in the next layer; layers - 1 x followers x experts."""
    shape = (affinity.num_layers - 1, affinity.num_followers)
    found = [[generator.permutation(affinity.num_experts) for _ in range(shape[1])] for _ in range(shape[0])]
    return np.array(found, dtype=np.int64).reshape(*shape, affinity.num_experts)


def transitions(affinity: Affinity, seed: int = 0) -> Floats:
    """Share of the tokens that go from each expert to each one of the next layer; layers - 1 x experts x experts."""
    generator = np.random.default_rng(seed)
    share, favourites = popularity(affinity, generator), followers(affinity, generator)
    here, found = share[0], list[Floats]()
    rows = np.arange(affinity.num_experts)
    for layer, favourite in enumerate(favourites):
        step = np.tile((1.0 - affinity.followed_frac) * share[layer + 1], (affinity.num_experts, 1))
        for each in favourite:
            step[rows, each] += affinity.followed_frac / affinity.num_followers
        found.append(here[:, None] * step)
        here = found[-1].sum(axis=0)
    return np.array(found).reshape(-1, affinity.num_experts, affinity.num_experts)


def loads(moves: Floats) -> Floats:
    """Share of the tokens that each expert of each layer gets; layers x experts."""
    return np.concatenate([moves[:1].sum(axis=2), moves.sum(axis=1)])
