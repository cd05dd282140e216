"""Best of n: independent answers, each read once by a verifier that scores it."""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.base.technique import Technique
from orrery.reasoning.choice import Choice, SampledKnobs
from orrery.reasoning.graph import Call, Problem, answers, readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(SampledKnobs):
    """``num_samples`` answers."""

    @property
    def choice(self) -> Choice:
        """The best by one score each."""
        return Choice(by="check", num_tries=self.num_samples)


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """All answers at once over one prompt; then the verifier reads each."""
    solve = answers(problem, knobs.num_samples)
    yield solve
    yield readings(problem, solve, name="score", per_answer=1, output_tokens=0.0)


TECHNIQUE = Technique(
    name="best-of-n",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="One right answer among many is enough where a verifier can tell it, and all are written at once.",
    costs="Every sample pays for a whole answer, however easy the question, and a verifier reads them all.",
    claims=("cobbe-2021-verifiers", "snell-2024-test-time-compute"),
)
