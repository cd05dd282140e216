"""The integer program over blocks: how many layers take each variant, least damage in all, within every limit.

    min  sum d[v] x[v]     sum x[v] = layers,     sum c[v] x[v] <= limit of c,     x whole

Layers are taken to be equal in damage, so counts of variants are enough; they are laid out with the whole ones first.
Bercovich et al. (arXiv 2411.19146) pose the program with a measured score a layer and variant.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from orrery.base.program import Program, solved
from orrery.execution.memory import Infeasible
from orrery.planner.blocks.library import BlockCost, Variant


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What all layers together may take; infinite where nothing is limited."""

    num_parameters: float
    memory_bytes: float  # weights, and the cache of ``cached_tokens``
    cached_tokens: float
    step_s: float


def chosen(costs: Sequence[BlockCost], num_layers: int, limits: Limits) -> tuple[Variant, ...] | Infeasible:
    """A variant for each layer; Infeasible where even the least of everything passes a limit."""
    rows = {
        "parameters": (np.array([c.num_parameters for c in costs]), limits.num_parameters),
        "bytes": (
            np.array([c.weight_bytes + c.cache_bytes * limits.cached_tokens for c in costs]),
            limits.memory_bytes,
        ),
        "s": (np.array([c.step_s for c in costs]), limits.step_s),
    }
    for unit, (each, limit) in rows.items():
        if (need := float(each.min()) * num_layers) > limit:
            return Infeasible(
                what=f"{num_layers} layers of the smallest blocks",
                need=need,
                have=limit,
                unit=unit,
                smallest_change="Loosen the limit, or leave layers out.",
            )
    capped = [(each / limit, 1.0) for each, limit in rows.values() if np.isfinite(limit)]
    solution = solved(
        Program(
            cost=np.array([c.variant.damage_ratio for c in costs]),
            matrix=np.array([np.ones(len(costs)), *(row for row, _ in capped)]),
            row_low=np.array([num_layers, *(-np.inf for _ in capped)]),
            row_high=np.array([num_layers, *(high for _, high in capped)]),
            most=np.full(len(costs), float(num_layers)),
            is_whole=np.ones(len(costs), dtype=np.bool_),
        )
    )
    if solution is None:
        return Infeasible(
            what=f"{num_layers} layers within all limits at once",
            need=num_layers,
            have=0,
            unit="layers",
            smallest_change="Loosen one of the limits.",
        )
    return tuple(
        cost.variant for cost, count in zip(costs, np.rint(solution.x), strict=True) for _ in range(int(count))
    )
