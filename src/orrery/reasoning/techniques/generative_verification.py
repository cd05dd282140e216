"""Generative verification: several answers, and several written checks of each, whose votes are its score."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.reasoning.choice import Choice, ShapeKnobs
from orrery.reasoning.graph import Call, Problem, answers, readings


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(ShapeKnobs):
    """A check is ``check_ratio`` times as long as an answer."""

    samples: ClassVar[str] = "num_solutions"
    num_solutions: int = 16
    num_checks: int = 4
    check_ratio: float = 1.0

    def __post_init__(self) -> None:
        for name in ("num_solutions", "num_checks", "check_ratio"):
            check_above(self, name, 0)

    @property
    def choice(self) -> Choice:
        """The one with the most yes."""
        return Choice(by="check", num_tries=self.num_solutions, num_checks=self.num_checks)


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """Answers, then every check of every answer at once; the checks of an answer share it."""
    solve = answers(problem, knobs.num_solutions)
    yield solve
    check_tokens = knobs.check_ratio * problem.answer_tokens
    yield readings(problem, solve, name="check", per_answer=knobs.num_checks, output_tokens=check_tokens)


TECHNIQUE = Technique(
    name="generative-verification",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="Finds a right answer that is in the minority, as far as checks tell right from wrong.",
    costs="Each check costs about what a further answer would: S answers with V checks cost S (1 + check_ratio V).",
    claims=("zhang-2024-genrm", "solve-or-verify-2025"),
)
