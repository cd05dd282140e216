"""Collectives beside products: what a technique is told of a layer, and what it answers.

A rule sees the products and the collective that waits for them (or that they wait for), whole and cut into pieces; it
answers with the seconds that the pair takes. ``execution.tensor_overlap`` serves tensor parallelism,
``execution.expert_overlap`` the exchange of tokens between experts.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pair:
    """Products and their collectives in one layer and direction; arrays with one entry a layout."""

    compute_s: Floats  # of the products that may run beside the collectives
    network_s: Floats  # of the collectives, whole
    num_collectives: float  # how many in this layer and direction
    cut_compute_s: Callable[[int], Floats]  # all products cut into so many pieces of the tokens, one after the other
    cut_columns_s: Callable[[int], Floats]  # the same, cut into pieces of the weights' columns
    cut_network_s: Callable[[int], Floats]  # all collectives cut into so many messages
    backward_weight_s: Floats  # weight gradients that wait for nobody (0 in the forward pass)
    contention_ratio: float  # how much slower products run beside a collective


Rule = Callable[[Pair, NDArray[np.float64]], Floats]
"""(pair, knobs) to the seconds that products, weight gradients and collectives take together."""
