"""A budget of answers dealt out by difficulty: each bin of questions gets samples, a search or revisions, and how many.

With n answers' worth of tokens on a question that one try solves with chance p, and a verifier of known error:

samples    n tries, the best by the verifier's word
search     an answer is S steps, each right with p^(1/S); of n candidates of every step the verifier takes one
revision   a chain of n tries: a wrong one is mended with p, a right one spoiled with ``spoil_frac``; the verifier takes
           the best of the chain

The best allocation is found exactly over the grid of n: bins are few, costs whole. [snell-2024-test-time-compute]
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.reasoning.vote import Checker, checked_frac

WAYS = ("samples", "search", "revision")
NUM_STEPS = 8
"""Steps of an answer, where a search is looked at: assumed."""

COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Answers' worth of tokens that a question may get."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The way that a bin gets: its kind, answers' worth of tokens a question, and how often that is right."""

    way: str
    num_answers: int
    right_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """Chances of ways: a verifier (None: never wrong), and the share of right answers that a revision spoils."""

    checker: Checker | None = None
    spoil_frac: float = 0.0

    def right_frac(self, way: str, success_frac: float, num_answers: int) -> float:
        """How often the answer of a question is right with so many answers' worth of tokens."""
        if way == "search":
            step = self._picked(success_frac ** (1.0 / NUM_STEPS), num_answers)
            return step**NUM_STEPS
        if way == "revision":
            return self._picked(self._chained(success_frac, num_answers), num_answers)
        return self._picked(success_frac, num_answers)

    def _picked(self, success_frac: float, count: int) -> float:
        if self.checker is None:
            return float(1.0 - (1.0 - success_frac) ** count)
        return checked_frac(np.array([success_frac]), count, 1, self.checker)

    def _chained(self, success_frac: float, count: int) -> float:
        """Mean share of right answers along a chain."""
        right, total = success_frac, 0.0
        for _ in range(count):
            total += right
            right = right * (1.0 - self.spoil_frac) + (1.0 - right) * success_frac
        return total / count


def best_allocation(
    success_fracs: Sequence[float], budget_answers: int, law: Law, ways: Sequence[str] = WAYS
) -> tuple[Choice, ...]:
    """The choice for each equally full bin that is right most often, at a mean of so many answers each at most."""
    total = budget_answers * len(success_fracs)
    counts = [n for n in COUNTS if n <= total]
    best = np.full(total + 1, 0.0)
    picks: list[NDArray[np.int64]] = [np.zeros(total + 1, np.int64) for _ in success_fracs]
    options: list[list[Choice]] = []
    for at, p in enumerate(success_fracs):
        of_bin = [max((_choice(law, way, p, n) for way in ways), key=lambda c: c.right_frac) for n in counts]
        options.append(of_bin)
        following = np.full(total + 1, -np.inf)
        for number, option in enumerate(of_bin):
            shifted = np.concatenate([np.full(option.num_answers, -np.inf), best[: total + 1 - option.num_answers]])
            gains = shifted + option.right_frac
            better = gains > following + 1e-15
            following, picks[at] = np.where(better, gains, following), np.where(better, number, picks[at])
        best = following
    left, found = int(np.argmax(best)), list[Choice]()
    for at in range(len(options) - 1, -1, -1):
        choice = options[at][int(picks[at][left])]
        found.append(choice)
        left -= choice.num_answers
    return tuple(reversed(found))


def uniform(success_fracs: Sequence[float], num_answers: int, law: Law, way: str) -> float:
    """How often questions are right where every one gets the same."""
    return float(np.mean([law.right_frac(way, p, num_answers) for p in success_fracs]))


def saving_ratio(success_fracs: Sequence[float], num_answers: int, law: Law, way: str) -> float:
    """How many times fewer answers' worth of tokens are as often right when dealt out by difficulty, against one way
    and number for all.
    """
    goal = uniform(success_fracs, num_answers, law, way) - 1e-12
    low, high = 1, num_answers
    while low < high:
        middle = (low + high) // 2
        found = best_allocation(success_fracs, middle, law)
        low, high = (low, middle) if mean_right(found) >= goal else (middle + 1, high)
    spent = sum(c.num_answers for c in best_allocation(success_fracs, low, law)) / len(success_fracs)
    return num_answers / spent


def mean_right(found: Sequence[Choice]) -> float:
    """How often the questions of all bins are right."""
    return sum(c.right_frac for c in found) / len(found)


def _choice(law: Law, way: str, success_frac: float, count: int) -> Choice:
    return Choice(way=way, num_answers=count, right_frac=law.right_frac(way, success_frac, count))
