"""Tries dealt out among questions: each further one where it helps most, instead of as many for everyone.

Gains of tries fall geometrically, so the best allocation gives every question tries until its next one gains less than
a threshold that is the same for all: the larger of what is left, always. [snell-2024-test-time-compute]
"""

import heapq
from collections.abc import Sequence

from orrery.reasoning.coverage import coverage, gain_frac


def allocate(success_fracs: Sequence[float], total_tries: int, *, least_each: int = 1) -> list[int]:
    """How many of ``total_tries`` each question gets, every one at least ``least_each``."""
    tries = [least_each] * len(success_fracs)
    queue = [(-gain_frac(p, least_each), i) for i, p in enumerate(success_fracs)]
    heapq.heapify(queue)
    for _ in range(total_tries - sum(tries)):
        _, i = heapq.heappop(queue)
        tries[i] += 1
        heapq.heappush(queue, (-gain_frac(success_fracs[i], tries[i]), i))
    return tries


def solved_frac(success_fracs: Sequence[float], tries: Sequence[int]) -> float:
    """Mean coverage of questions with so many tries each."""
    return sum(float(coverage(p, n)) for p, n in zip(success_fracs, tries, strict=True)) / len(success_fracs)


def saving_ratio(success_fracs: Sequence[float], uniform_tries: int) -> float:
    """How many times fewer tries solve as many questions when they are dealt out by difficulty."""
    goal = solved_frac(success_fracs, [uniform_tries] * len(success_fracs))
    low, high = len(success_fracs), len(success_fracs) * uniform_tries
    while low < high:
        middle = (low + high) // 2
        enough = solved_frac(success_fracs, allocate(success_fracs, middle)) >= goal - 1e-12
        low, high = (low, middle) if enough else (middle + 1, high)
    return len(success_fracs) * uniform_tries / low
