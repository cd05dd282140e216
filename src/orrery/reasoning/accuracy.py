"""How often a shape's one answer is right, from how often a single try is."""

from dataclasses import dataclass

import numpy as np

from orrery.reasoning.choice import Choice
from orrery.reasoning.coverage import Difficulty
from orrery.reasoning.vote import Checker, WrongAnswers, checked_frac, majority_frac

NUM_BINS = 200
"""Difficulties that stand for a distribution of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAccuracy:
    """``coverage_frac``: a right answer is among the tries; ``right_frac``: the chosen one is right."""

    coverage_frac: float
    right_frac: float | None  # None where a verifier chooses that nothing is known of


def odds(choice: Choice, questions: Difficulty, wrong: WrongAnswers, checker: Checker | None) -> AnswerAccuracy:
    """The odds of an answer to such questions, chosen in that way."""
    chances = 1.0 - (1.0 - questions.bins(NUM_BINS)) ** choice.num_rounds
    right: float | None = None
    if choice.by == "vote":
        right = majority_frac(chances, choice.num_tries, wrong, np.random.default_rng(0))
    elif checker:
        right = checked_frac(chances, choice.num_tries, choice.num_checks, checker)
    return AnswerAccuracy(coverage_frac=questions.coverage(choice.num_tries * choice.num_rounds), right_frac=right)
