"""Wasted work in a stream of episodes: regret against an answer given at once, and when to stop.

An answer is written in episodes; after k of them it is right with a probability that grows with k. Cumulative regret
is the sum over episodes of what the likelihood still lacks. Writing on only while progress is made spends, on each
question, the episodes that it needs. [mrt-2025]
"""

from dataclasses import dataclass

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.reasoning.coverage import Difficulty, Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Up to ``num_episodes`` episodes on questions of a difficulty, each solving what is left with its chance."""

    difficulty: Difficulty
    num_episodes: int

    def __post_init__(self) -> None:
        if self.num_episodes < 1:
            raise ScenarioError(f"num_episodes = {self.num_episodes}; write 1 or more.")

    def solved_frac(self) -> float:
        """How many questions are solved in the end, however it is stopped."""
        return self.difficulty.coverage(self.num_episodes)

    def regret_episodes(self) -> float:
        """Mean over questions of the summed distance from certainty."""
        return sum(1.0 - self.difficulty.coverage(k) for k in range(1, self.num_episodes + 1))

    def needed_episodes(self) -> float:
        """Mean episodes where each question stops once it is solved: 1 + the chances that 1, 2, … did not do."""
        return 1.0 + sum(1.0 - self.difficulty.coverage(k) for k in range(1, self.num_episodes))

    def saving_ratio(self) -> float:
        """How many times fewer episodes that takes than the full length for all, at the same accuracy."""
        return self.num_episodes / self.needed_episodes()

    def progress(self) -> Floats:
        """Gain of each episode in the share of solved questions."""
        return np.diff([self.difficulty.coverage(k) for k in range(self.num_episodes + 1)])
