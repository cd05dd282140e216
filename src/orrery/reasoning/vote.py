"""Which answer is given when several are at hand: by majority, or by what checks say of each.

A question is a distribution over answers: the right one with probability p, wrong ones with shares that fall as a power
of their rank. A check says yes to a right answer with one probability and to a wrong one with another; how easily one
particular answer fools the checks is drawn once, so checks of the same answer agree more than independent ones would.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongAnswers:
    """``num_answers`` wrong ones, the r-th as likely as 1 / r ** ``rank_ratio``, always in the same order."""

    num_answers: int = 20
    rank_ratio: float = 1.0

    def shares(self) -> Floats:
        """Of all wrong answers."""
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
        if not (0.0 < self.wrong_frac < 1.0 and 0.0 < self.right_frac < 1.0 and self.evenness_ratio > 0.0):
            raise ScenarioError(
                f"right_frac = {self.right_frac:g}, wrong_frac = {self.wrong_frac:g}, evenness_ratio = "
                f"{self.evenness_ratio:g}; write fractions between 0 and 1, and an evenness above 0."
            )

    def drawn(self, is_right: Bools, random: np.random.Generator) -> Floats:
        """The rate of yes of each answer."""
        mean = np.where(is_right, self.right_frac, self.wrong_frac)
        return random.beta(mean * self.evenness_ratio, (1.0 - mean) * self.evenness_ratio)


def majority_frac(success_fracs: Floats, num_votes: int, wrong: WrongAnswers, random: np.random.Generator) -> float:
    """How many of the questions a majority of ``num_votes`` gets right; ties are broken by lot."""
    p = success_fracs[:, None]
    votes = random.multinomial(num_votes, np.concatenate([p, (1.0 - p) * wrong.shares()], axis=1))
    is_best: Bools = votes == votes.max(axis=1, keepdims=True)
    tied: Ints = is_best.sum(axis=1)
    return float((is_best[:, 0] / tied).mean())


def checked_fracs(
    success_fracs: Floats, num_solutions: int, checks: Sequence[int], checker: Checker, random: np.random.Generator
) -> list[float]:
    """How many questions are right when the answer with the most yes is given, after each of ``checks`` (rising)."""
    is_right: Bools = random.random((success_fracs.size, num_solutions)) < success_fracs[:, None]
    rates, found = checker.drawn(is_right, random), list[float]()
    score: Ints = np.zeros(is_right.shape, dtype=np.int64)
    for more in np.diff([0, *checks]).tolist():
        score = score + random.binomial(more, rates)
        is_best: Bools = score == score.max(axis=1, keepdims=True)
        tied: Ints = is_best.sum(axis=1)
        right: Ints = (is_best & is_right).sum(axis=1)
        found.append(float((right / tied).mean()))
    return found
