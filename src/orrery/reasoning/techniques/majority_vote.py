"""Majority vote (self-consistency): independent answers, of which the most frequent one counts."""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.reasoning.choice import Choice, SampledKnobs
from orrery.reasoning.graph import Call, Problem, answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(SampledKnobs):
    """``num_samples`` answers."""

    @property
    def choice(self) -> Choice:
        """The most frequent."""
        return Choice(by="vote", num_tries=self.num_samples)


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """All answers at once over one prompt; counting them costs nothing."""
    yield answers(problem, knobs.num_samples)


TECHNIQUE = Technique(
    name="majority-vote",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="Needs no verifier: where the right answer is the likeliest one, more votes make it certain.",
    costs="Where a wrong answer is likelier than the right one, more votes make that certain.",
    claims=("wang-2022-self-consistency",),
)
