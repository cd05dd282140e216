"""The share of what lies between idle and the limit that a device draws over a step."""

from orrery.base.compiled import compiled


@compiled
def drawn_frac(matrix_s: float, memory_s: float, wall_s: float, concave_power: float) -> float:
    """Share of the power between idle and the limit that work draws whose weighted seconds at the two roofs are
    ``matrix_s`` and ``memory_s``, spread over ``wall_s``."""
    if wall_s <= 0.0:
        return 0.0
    return min(1.0, (matrix_s / wall_s) ** concave_power + (memory_s / wall_s) ** concave_power)
