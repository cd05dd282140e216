"""Sequential revision: each answer is written with the last ones in view; several chains may run side by side."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.reasoning.choice import Choice, ShapeKnobs
from orrery.reasoning.graph import Call, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(ShapeKnobs):
    """``num_chains`` of ``num_rounds`` answers; a round sees at most ``seen_rounds`` answers before it."""

    samples: ClassVar[str] = "num_rounds"
    num_rounds: int = 4
    num_chains: int = 1
    seen_rounds: int = 4

    def __post_init__(self) -> None:
        for name in ("num_rounds", "num_chains", "seen_rounds"):
            check_above(self, name, 0)

    @property
    def choice(self) -> Choice:
        """The most frequent of the chains' last answers."""
        return Choice(by="vote", num_tries=self.num_chains, num_rounds=self.num_rounds)


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """One round after the other; answers stay in the cache until the window moves and what is left is read again."""
    prompt, answer, chains = problem.prompt_tokens, problem.answer_tokens, knobs.num_chains
    before: tuple[str, ...] = ()
    for i in range(knobs.num_rounds):
        seen = min(i, knobs.seen_rounds) * answer
        moved = seen if i > knobs.seen_rounds else 0.0
        yield Call(
            name=f"round {i}",
            after=before,
            count=chains,
            context_tokens=prompt + seen,
            distinct_tokens=prompt + chains * seen,
            fresh_tokens=(prompt if i == 0 else 0.0) + chains * moved,
            output_tokens=answer,
        )
        before = (f"round {i}",)


TECHNIQUE = Technique(
    name="sequential-revision",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="Each answer starts from the mistakes of the last ones, which helps most where the first was nearly right.",
    costs="Rounds wait for each other, and the context grows with what was tried.",
    claims=("snell-2024-test-time-compute",),
)
