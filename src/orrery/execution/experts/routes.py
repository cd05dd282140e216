"""Routes of tokens through the experts of a model's layers: counted in a routing trace, or drawn from a law.

A token's main expert of a layer is the one it chose first. ``moves`` say how often a token whose main expert was a
goes to b in the next layer, whichever of its choices b is. A placement is found on one half of a trace's tokens and
judged on the other, so that chance does not pass for affinity.
"""

from functools import lru_cache

import numpy as np

from orrery.execution.experts.affinity import Affinity, Floats, Ints, loads, transitions
from orrery.execution.routes import Routes

MIN_TOKENS = 2
"""Tokens of a trace at least: one for each half."""


@lru_cache(maxsize=32)
def routes_of_law(num_experts: int, num_layers: int, skew_ratio: float, followed_frac: float) -> Routes:
    """Routes by a power law of popularity, in which a share of the tokens follows one favourite an expert."""
    moves = transitions(
        Affinity(num_experts=num_experts, num_layers=num_layers, followed_frac=followed_frac, skew_ratio=skew_ratio)
    )
    return Routes(loads_frac=loads(moves), moves_frac=moves, judged_frac=moves, has_affinity=followed_frac > 0.0)


def routes_of_trace(chosen: Ints, num_experts: int) -> Routes:
    """Routes counted in ``chosen``: tokens x layers x choices, the first choice first."""
    half = len(chosen) // 2
    load = np.array([np.bincount(layer.ravel(), minlength=num_experts) for layer in chosen.transpose(1, 0, 2)])
    return Routes(
        loads_frac=load / load.sum(axis=1, keepdims=True),
        moves_frac=_counted(chosen[: max(half, 1)], num_experts),
        judged_frac=_counted(chosen[half:], num_experts),
        has_affinity=True,
        num_tokens=len(chosen),
    )


def _counted(chosen: Ints, num_experts: int) -> Floats:
    """Shares of the ways from a layer's main expert to all chosen of the next."""
    tokens, layers, each = chosen.shape
    moves = np.zeros((max(layers - 1, 0), num_experts, num_experts))
    for layer in range(layers - 1):
        pair = chosen[:, layer, :1] * num_experts + chosen[:, layer + 1]
        moves[layer] = np.bincount(pair.ravel(), minlength=num_experts**2).reshape(num_experts, num_experts)
    return moves / (tokens * each)
