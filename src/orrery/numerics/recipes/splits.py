"""The best split of a float's bits between exponent and mantissa, and the best clip, by the error of the output.

With n bits there are n - 1 splits, from E1 (an even grid) to E(n-1) (powers of two). For each, the scale takes the
place of a real-valued exponent bias: one for every row of the weights, one for the whole tensor of activations.
Weights and activations are chosen in turn, each for what the other one has become. [Liu et al. 2023, LLM-FP4, section
4.1; rounds and the search for every row as in the authors' code]
"""

from collections.abc import Iterable

import numpy as np

from orrery.numerics.recipes.constrained import Settled
from orrery.numerics.recipes.format_grid import FormatGrid, grid
from orrery.numerics.recipes.grid import Floats

MAX_BITS = 8
"""Wider formats are left as they are."""


def split_grids(bits: int, share: str) -> list[FormatGrid]:
    """Every float of so many bits whose codes are all numbers, one scale a ``share``."""
    return [grid(f"e{e}m{bits - 1 - e}finite/{share}") for e in range(1, bits)]


def best_weights(weights: Floats, seen: Floats, targets: Floats, bits: int, ratios: Iterable[float]) -> Settled:
    """For the activations as they are ``seen`` and the output ``wanted`` of them, (tokens, out)."""
    found: list[tuple[float, Settled]] = []
    tried = tuple(ratios)
    for candidate in split_grids(bits, "row"):
        least = np.full((len(weights), 1), np.inf)
        scale = np.ones((len(weights), 1))
        for ratio in tried:
            fitted = candidate.fit(weights, ratio)
            errors = np.square(seen @ fitted.round(weights).T - targets).sum(axis=0)[:, None]
            scale = np.where(errors < least, fitted.scale[:, :1], scale)
            least = np.minimum(errors, least)
        found.append((float(least.sum()), Settled(grid=candidate, scale=scale)))
    return min(found, key=lambda pair: pair[0])[1]


def best_activations(inputs: Floats, rounded: Floats, targets: Floats, bits: int, ratios: Iterable[float]) -> Settled:
    """For the weights as they have been ``rounded``."""
    found: list[tuple[float, Settled]] = []
    tried = tuple(ratios)
    for candidate in split_grids(bits, "tensor"):
        for ratio in tried:
            fitted = candidate.fit(inputs, ratio)
            error = float(np.square(fitted.round(inputs) @ rounded.T - targets).sum())
            found.append((error, Settled(grid=candidate, scale=fitted.scale[:1, :1])))
    return min(found, key=lambda pair: pair[0])[1]
