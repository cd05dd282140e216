"""The share of what lies between idle and the limit that a device draws over a step."""

from orrery.base.compiled import compiled


@compiled
def drawn_frac(matrix_s: float, memory_s: float, wall_s: float, concave_power: float) -> float:
    """Share of the power between idle and the limit that work draws whose weighted seconds at the two roofs are
    ``matrix_s`` and ``memory_s``, spread over ``wall_s``."""
    if wall_s <= 0.0:
        return 0.0
    return min(1.0, (matrix_s / wall_s) ** concave_power + (memory_s / wall_s) ** concave_power)


NEAR = 1e-3
"""Distance of a number from another one, as a part of it, up to which its power follows by a series of five terms; what
they leave out is below 1e-16 of the power."""


@compiled
def power_near(x: float, exponent: float, nearby: float, of_nearby: float) -> float:
    """``x ** exponent``, from ``of_nearby``, that of a ``nearby`` number, where it is near enough."""
    if not abs(x - nearby) < NEAR * nearby:
        return x**exponent
    more = x / nearby - 1.0
    rest = 1.0 + (exponent - 3.0) / 4.0 * more * (1.0 + (exponent - 4.0) / 5.0 * more)
    return of_nearby * (
        1.0 + exponent * more * (1.0 + (exponent - 1.0) / 2.0 * more * (1.0 + (exponent - 2.0) / 3.0 * more * rest))
    )
