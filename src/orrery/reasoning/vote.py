"""Which answer is given when several are at hand: by majority, or by what checks say of each.

A question is a distribution over answers: the right one with probability p, wrong ones with shares that fall as a power
of their rank. A check says yes to a right answer with one probability and to a wrong one with another; how easily one
particular answer fools the checks is drawn once, so checks of the same answer agree more than independent ones would.
"""

from dataclasses import dataclass
from math import lgamma

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NUM_DRAWN = 4000
"""Draws of the wrong votes, where wrong answers differ."""

CERTAIN = 1e-12
"""As near as a chance comes to 0 or 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongAnswers:
    """``num_answers`` wrong ones, the r-th as likely as 1 / r ** ``rank_ratio``, always in the same order."""

    num_answers: int = 20
    rank_ratio: float = 1.0

    def shares(self) -> Floats:
        """Share of each wrong answer among all wrong answers."""
        weights = np.arange(1, self.num_answers + 1, dtype=np.float64) ** -self.rank_ratio
        return weights / weights.sum()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    """How often a check says yes: to right answers, to wrong ones; and how alike checks of one answer are.

    ``evenness_ratio`` is a + b of the beta distribution that an answer's own rate of yes is drawn from: large values
    make all right answers (and all wrong ones) alike, values near 0 make every check of an answer say the same.
    """

    right_frac: float = 0.8
    wrong_frac: float = 0.3
    evenness_ratio: float = 2.0

    def __post_init__(self) -> None:
        if not (0.0 <= self.wrong_frac <= 1.0 and 0.0 <= self.right_frac <= 1.0 and self.evenness_ratio > 0.0):
            raise ScenarioError(
                f"right_frac = {self.right_frac:g}, wrong_frac = {self.wrong_frac:g}, evenness_ratio = "
                f"{self.evenness_ratio:g}; write fractions from 0 to 1, and an evenness above 0."
            )

    def yes(self, num_checks: int) -> tuple[Floats, Floats]:
        """Chances of 0 to ``num_checks`` times yes, for a right answer and for a wrong one: beta-binomial."""
        found = list[Floats]()
        for mean in np.clip([self.right_frac, self.wrong_frac], CERTAIN, 1.0 - CERTAIN):
            a, b = mean * self.evenness_ratio, (1.0 - mean) * self.evenness_ratio
            i = np.arange(num_checks + 1)
            log = _log_choose(num_checks) + _lgamma(i + a) + _lgamma(num_checks - i + b) - lgamma(num_checks + a + b)
            found.append(np.exp(log + lgamma(a + b) - lgamma(a) - lgamma(b)))
        return found[0], found[1]


def majority_frac(success_fracs: Floats, num_votes: int, wrong: WrongAnswers, random: np.random.Generator) -> float:
    """How many of the questions a majority of ``num_votes`` gets right; ties are broken by lot."""
    right, p = np.arange(num_votes + 1), np.clip(success_fracs, CERTAIN, 1.0 - CERTAIN)[:, None]
    chances = np.exp(_log_choose(num_votes) + right * np.log(p) + (num_votes - right) * np.log1p(-p))
    return float((chances @ _winning(num_votes, wrong, random)).mean())


def _winning(num_votes: int, wrong: WrongAnswers, random: np.random.Generator) -> Floats:
    """The chance that so many right votes (0 to all) win against the rest, which go to wrong answers one by one."""
    count = NUM_DRAWN if wrong.num_answers > 1 else 1
    ends, each = np.cumsum(wrong.shares())[:-1], np.arange(count)
    votes, most, tied = np.zeros((count, wrong.num_answers), np.int64), np.zeros(count), np.zeros(count)
    found = np.ones(num_votes + 1)
    for cast in range(1, num_votes + 1):
        voted = np.searchsorted(ends, random.random(count))
        votes[each, voted] += 1
        now = votes[each, voted]
        tied = np.where(now > most, 1.0, tied + (now == most))
        most, right = np.maximum(most, now), num_votes - cast
        found[right] = ((right > most) + (right == most) / (1.0 + tied)).mean()
    return found


def checked_frac(success_fracs: Floats, num_solutions: int, num_checks: int, checker: Checker) -> float:
    """How many questions are right when the answer with the most yes of ``num_checks`` is given, ties broken by lot.

    The best of n has a score s with probability F(s)^n - F(s - 1)^n, and answers of a score are right as often as any.
    """
    p, (right, wrong) = success_fracs[:, None], checker.yes(num_checks)
    score = p * right + (1.0 - p) * wrong
    upto = np.minimum(np.cumsum(score, axis=1), 1.0)
    is_best = upto**num_solutions - np.concatenate([np.zeros_like(p), upto[:, :-1]], axis=1) ** num_solutions
    return float((is_best * p * right / np.maximum(score, 1e-300)).sum(axis=1).mean())


def _log_choose(count: int) -> Floats:
    """Logarithms of the binomial coefficients of ``count``."""
    log = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, count + 1)))])
    return log[-1] - log - log[::-1]


def _lgamma(values: Floats) -> Floats:
    return np.array([lgamma(value) for value in values.tolist()])
