"""Collectives beside products: what a technique is told of a layer, and what it answers.

A rule sees the products and the collective that waits for them (or that they wait for), whole and cut into pieces; it
answers with the seconds that the pair takes. ``execution.tensor_overlap`` serves tensor parallelism,
``execution.expert_overlap`` the exchange of tokens between experts.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _nothing() -> Floats:
    return np.zeros(())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """Products and their collectives in one layer and direction; arrays with one entry a layout.

    Weight gradients are not among ``compute_s``. For experts, ``network_s`` is the exchange out and back between nodes,
    and ``inside_s`` what follows it on the links inside a node (gathering what the exchange brought, where experts are
    cut, and scattering their output). ``expert_share`` is how the tokens fall on the experts, which stand on
    ``num_ranks`` ranks in order; times are then those of the fullest rank. ``expert_gather_s`` of a backward pass
    includes the way back of the expert's gradients.
    """

    compute_s: Floats  # of the products that may run beside the collectives
    network_s: Floats  # of the collectives, whole
    num_collectives: float  # how many in this layer and direction
    cut_compute_s: Callable[[int], Floats]  # all products cut into so many pieces of the tokens, one after the other
    cut_columns_s: Callable[[int], Floats]  # the same, cut into pieces of the weights' columns
    cut_network_s: Callable[[int], Floats]  # all collectives cut into so many messages
    backward_weight_s: Floats  # weight gradients that wait for nobody (0 in the forward pass)
    contention_ratio: float  # how much slower products run beside a collective; 1 = no slower
    inside_s: Floats = field(default_factory=_nothing)
    other_compute_s: Floats = field(default_factory=_nothing)  # of the layer's other work (attention, streams)
    expert_gather_s: Floats = field(default_factory=_nothing)  # of one expert's parameters to all ranks
    expert_share: Floats | tuple[float, ...] = ()  # a row for each placement that is averaged over
    num_ranks: int = 1

    @property
    def serial_s(self) -> Floats:
        """Time (s) with everything one after the other."""
        return self.compute_s + self.backward_weight_s + self.network_s + self.inside_s


Rule = Callable[[Pair, NDArray[np.float64]], Floats]
"""(pair, knobs) to the seconds that products, weight gradients and collectives take together."""


def beside(compute_s: Floats, network_s: Floats, contention_ratio: float) -> Floats:
    """A product and a collective that start together: max(network, compute + network (1 - 1/r)).

    While the collective runs the product makes 1/r of its progress. Never above their sum, never below the longer one.
    """
    return np.maximum(network_s, compute_s + network_s * (1.0 - 1.0 / contention_ratio))
