"""The highest rate at which a service still does what it should: bisection over the rate, and what a growing queue is.

Every rate sees the same requests: the same lengths, and gaps between arrivals that are only scaled (common random
numbers), so that two services differ by what they do and not by what was drawn.
"""

from collections.abc import Callable

import numpy as np

from orrery.base.errors import OutOfRange
from orrery.execution.memory import Infeasible, memory_of
from orrery.serving.online import open_loop
from orrery.serving.requests import Floats, Requests
from orrery.serving.simulation.result import Simulated
from orrery.serving.simulation.service import Pool, Service
from orrery.serving.steady import batch_limit

WIDENINGS = 12
"""How many factors of two lie between where a search begins and where it gives up."""

GROWING_FRAC = 0.02
"""A queue grows when its mean length rises by more than this share of the requests that arrive meanwhile."""

FILLING_FRAC = 0.1
"""The same for all requests in flight: a run is too short for its rate when hardly anything ends while it lasts."""


def highest_rate(
    make: Callable[[float], Requests],
    serve: Callable[[Requests], Simulated | Infeasible],
    meets: Callable[[Simulated], bool],
    low: float,
    high: float,
    tolerance: float = 0.02,
) -> float:
    """The highest rate of ``make`` whose run ``meets`` the objectives, to a share ``tolerance`` of itself.

    ``low`` and ``high`` are where to begin; they move outward where the answer lies outside. 0 where no rate does, or
    where the service cannot run at all.
    """

    def is_met(rate_per_s: float) -> bool:
        found = serve(make(rate_per_s))
        return not isinstance(found, Infeasible) and meets(found)

    return bisected(is_met, low, high, tolerance)[0]


def bisected(is_met: Callable[[float], bool], low: float, high: float, tolerance: float) -> tuple[float, float]:
    """The highest rate that ``is_met`` and the lowest that is not, a share ``tolerance`` apart.

    Where ``low`` is not met, the trickle ``low / 2^WIDENINGS`` is tried at once; 0 as the first of the two says that
    even it is not met.
    """
    if not 0.0 < low < high:
        raise ValueError(f"low and high are {low:g} and {high:g}; write 0 < low < high")
    best, missed = low, high
    if is_met(low):
        for _ in range(WIDENINGS):
            if not is_met(missed):
                break
            best, missed = missed, missed * 2.0
    else:
        best, missed = low / 2.0**WIDENINGS, low
        if not is_met(best):
            return 0.0, best
    while missed > best * (1.0 + tolerance):
        middle = (best * missed) ** 0.5
        best, missed = (middle, missed) if is_met(middle) else (best, middle)
    return best, missed


def is_sustained(run: Simulated) -> bool:
    """Whether the service kept up: what waits, and what is in flight, did not grow to the end of the arrivals.

    Means over the third and the last quarter of the arrivals are compared; where requests follow each other, over those
    that start a conversation, whose times do not depend on the service. Where arrivals exceed what is served by a share
    x, the queue grows by x for each arrival, so the rise over the arrivals between is x.
    """
    done = np.isfinite(run.finish_s)
    starts = done & (run.requests.after < 0) if run.requests.after.size else done
    if not starts.any():
        return False
    arrive_s, start_s = np.sort(run.arrive_s[done]), np.sort(run.arrive_s[starts])
    waiting = _rise_frac(start_s, arrive_s, np.sort(run.admitted_s[done]))
    in_flight = _rise_frac(start_s, arrive_s, np.sort(run.finish_s[done]))
    return waiting <= GROWING_FRAC and in_flight <= FILLING_FRAC


def _rise_frac(at_s: Floats, arrive_s: Floats, leave_s: Floats) -> float:
    """How much the number between arriving and leaving rises from the third to the last quarter, for each arrival."""
    quarter = at_s.size // 4
    if not quarter:
        return 0.0
    inside = np.searchsorted(arrive_s, at_s, side="right") - np.searchsorted(leave_s, at_s, side="right")
    rise = float(inside[-quarter:].mean() - inside[-2 * quarter : -quarter].mean())
    return rise / (quarter * arrive_s.size / at_s.size)


def closed_form(service: Service, sample: Requests) -> tuple[float, float]:
    """The rate that the closed form says is sustained, and the places in all batches; 1 where it cannot say."""
    input_tokens, output_tokens = float(sample.input_tokens.mean()), float(sample.output_tokens.mean())
    try:
        found = [_of_pool(pool, input_tokens, output_tokens) for pool in service.pools]
    except OutOfRange:
        return 1.0, 1.0
    return min(rate for rate, _ in found), max(places for _, places in found)


def _of_pool(pool: Pool, input_tokens: float, output_tokens: float) -> tuple[float, float]:
    deployment = pool.deployment
    memory = memory_of(deployment)
    if isinstance(memory, Infeasible):
        return 1.0, 1.0
    answers = 1.0 if pool.role == "prompts" else output_tokens
    places = batch_limit(deployment, memory, input_tokens, answers) * deployment.layout.dp
    ladder = np.geomspace(1.0, max(places, 1.0), 8)
    rates = open_loop(deployment, memory, input_tokens, answers, ladder).requests_per_s
    return float(rates.max()) * pool.replicas, places * pool.replicas
