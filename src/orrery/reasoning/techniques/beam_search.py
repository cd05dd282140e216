"""Beam search over steps: a process verifier scores every step, and the best beams are continued several ways."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, sqrt
from typing import ClassVar

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.reasoning.choice import ShapeKnobs
from orrery.reasoning.graph import Call, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(ShapeKnobs):
    """``num_beams`` paths (0: the root of the width) live on after each step, together continued ``width`` ways."""

    samples: ClassVar[str] = "width"
    width: int = 16
    num_beams: int = 0
    num_steps: int = 8
    lookahead_steps: int = 0

    def __post_init__(self) -> None:
        check_above(self, "width", 0)
        check_range(self, "num_beams", 0, self.width)
        check_above(self, "num_steps", 0)
        check_range(self, "lookahead_steps", 0, self.num_steps)


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """A step for all candidates, a look ahead where asked for, and the score of each; beams share their prompt only."""
    prompt, n = problem.prompt_tokens, knobs.width
    step, beams = problem.answer_tokens / knobs.num_steps, knobs.num_beams or ceil(sqrt(n))
    before: tuple[str, ...] = ()
    for i in range(knobs.num_steps):
        path, retained = i * step, beams * i * step
        yield Call(
            name=f"step {i}",
            after=before,
            count=n,
            context_tokens=prompt + path,
            distinct_tokens=prompt + retained,
            fresh_tokens=prompt if i == 0 else 0.0,
            output_tokens=step,
        )
        before, ahead = (f"step {i}",), min(knobs.lookahead_steps, knobs.num_steps - 1 - i) * step
        if ahead:
            yield Call(
                name=f"ahead {i}",
                after=before,
                count=n,
                context_tokens=prompt + path + step,
                distinct_tokens=prompt + retained + n * step,
                fresh_tokens=0.0,
                output_tokens=ahead,
            )
            before = (f"ahead {i}",)
        new = n * (step + ahead)
        yield Call(
            name=f"score {i}",
            model="verifier",
            after=before,
            count=n,
            context_tokens=prompt + path + step + ahead,
            distinct_tokens=prompt + retained + new,
            fresh_tokens=new + (prompt if i == 0 else 0.0),
            output_tokens=0.0,
        )
        before = (f"score {i}",)


TECHNIQUE = Technique(
    name="beam-search",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="Bad beginnings are given up after one step; what lives on shares the cache of its beginning.",
    costs="Every step waits for its slowest candidate and for the verifier, and beams grow alike.",
    claims=("snell-2024-test-time-compute",),
)
