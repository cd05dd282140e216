"""The highest rate at which a service still meets its objectives, found by bisection.

Every rate sees the same requests: the same lengths, and gaps between arrivals that are only scaled (common random
numbers), so that two services differ by what they do and not by what was drawn.
"""

from collections.abc import Callable

from orrery.execution.memory import Infeasible
from orrery.serving.requests import Requests
from orrery.serving.simulation.result import Simulated

WIDENINGS = 12
"""How often a bound may move by a factor of two before the search gives up."""


def highest_rate(
    make: Callable[[float], Requests], serve: Callable[[Requests], Simulated | Infeasible],
    meets: Callable[[Simulated], bool], low: float, high: float, tolerance: float = 0.02,
) -> float:  # fmt: skip
    """The highest rate of ``make`` whose run ``meets`` the objectives, to a share ``tolerance`` of itself.

    ``low`` and ``high`` are where to begin; they move outward where the answer lies outside. 0 where no rate does, or
    where the service cannot run at all.
    """

    def is_met(rate_per_s: float) -> bool:
        found = serve(make(rate_per_s))
        return not isinstance(found, Infeasible) and meets(found)

    if not 0.0 < low < high:
        raise ValueError(f"low and high are {low:g} and {high:g}; write 0 < low < high")
    best = low
    for _ in range(WIDENINGS):
        if is_met(best):
            break
        best, high = best / 2.0, best
    else:
        return 0.0
    for _ in range(WIDENINGS):
        if best < low or not is_met(high):
            break
        best, high = high, high * 2.0
    while high > best * (1.0 + tolerance):
        middle = (best * high) ** 0.5
        best, high = (middle, high) if is_met(middle) else (best, middle)
    return best
