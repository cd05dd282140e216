"""Sleep-time compute: a context is thought about before anyone asks; every question about it then needs less."""

from collections.abc import Iterator
from dataclasses import dataclass

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.reasoning.choice import Choice, ShapeKnobs
from orrery.reasoning.graph import Call, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(ShapeKnobs):
    """The pass writes ``thought_ratio`` plain answers' worth; a question then takes ``online_frac`` of an answer."""

    num_questions: int = 1
    thought_ratio: float = 1.0
    notes_ratio: float = 0.5  # what is kept of the thoughts, in answers
    online_frac: float = 0.2

    def __post_init__(self) -> None:
        for name in ("num_questions", "thought_ratio", "notes_ratio", "online_frac"):
            check_above(self, name, 0)

    @property
    def choice(self) -> Choice:
        """There is only one."""
        return Choice(by="vote")

    @property
    def num_answers(self) -> int:
        """Every question about the context."""
        return self.num_questions


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """The thinking pass, off line; then every question over the prompt and the notes that it left."""
    prompt, answer = problem.prompt_tokens, problem.answer_tokens
    yield Call(
        name="think",
        count=1,
        context_tokens=prompt,
        distinct_tokens=prompt,
        fresh_tokens=prompt,
        output_tokens=knobs.thought_ratio * answer,
        is_online=False,
    )
    context = prompt + knobs.notes_ratio * answer
    yield Call(
        name="answer",
        after=("think",),
        count=knobs.num_questions,
        context_tokens=context,
        distinct_tokens=context,
        fresh_tokens=context,
        output_tokens=knobs.online_frac * answer,
    )


TECHNIQUE = Technique(
    name="sleep-time-compute",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="The wait for an answer shrinks, and one pass over the context serves every question about it.",
    costs="The pass is paid for even where nobody asks, or asks what it did not foresee.",
    claims=("sleep-time-compute-2025",),
)
