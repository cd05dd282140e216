"""Best split of a token budget between answers and checks of them, and the accuracy of voting at the same cost."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.reasoning.graph import Problem
from orrery.reasoning.shape import graph_of
from orrery.reasoning.vote import Checker, WrongAnswers, checked_frac, majority_frac

Floats = NDArray[np.float64]

ONE_ANSWER = Problem(prompt_tokens=0.0, answer_tokens=1.0)
"""Lengths in answers: ratios of cost are all that counts here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """One way to spend, and how many questions come out right; no checks: the majority decides."""

    num_solutions: int
    num_checks: int
    answers_ratio: float  # cost, in answers
    right_frac: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """Questions on which ways to spend are tried: each one's chance of a right answer, and how wrong ones look."""

    success_frac: Floats
    wrong: WrongAnswers
    checker: Checker
    check_ratio: float
    seed: int = 0

    def vote(self, num_solutions: int) -> Split:
        """All of it for answers."""
        right = majority_frac(self.success_frac, num_solutions, self.wrong, np.random.default_rng(self.seed))
        return Split(num_solutions=num_solutions, num_checks=0, answers_ratio=float(num_solutions), right_frac=right)

    def check(self, num_solutions: int, checks: Sequence[int]) -> list[Split]:
        """Splits with ``num_solutions`` answers, one for each number of checks per answer in ``checks``."""
        return [
            Split(
                num_solutions=num_solutions,
                num_checks=n,
                answers_ratio=self._spent(num_solutions, n),
                right_frac=checked_frac(self.success_frac, num_solutions, n, self.checker),
            )
            for n in checks
        ]

    def _spent(self, num_solutions: int, num_checks: int) -> float:
        """Tokens written, in answers."""
        return graph_of(
            "generative-verification",
            ONE_ANSWER,
            num_solutions=num_solutions,
            num_checks=num_checks,
            check_ratio=self.check_ratio,
        ).written_tokens()


def growth(best: Sequence[Split]) -> Mapping[str, float]:
    """Exponents a of "number ~ cost ** a" along a frontier, by least squares of logarithms; none of a single split."""
    if len(best) < 2:
        return {}
    cost = np.log([split.answers_ratio for split in best])
    counts = {"solutions": [split.num_solutions for split in best], "checks": [split.num_checks for split in best]}
    return {name: float(np.polyfit(cost, np.log(values), 1)[0]) for name, values in counts.items()}
