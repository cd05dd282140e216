"""Speculative chains: a small model writes blocks, a large one scores them and writes again those that it rejects."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from orrery.base.knobs import check_above, check_range
from orrery.base.technique import Technique
from orrery.reasoning.choice import Choice, ShapeKnobs
from orrery.reasoning.graph import Call, Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(ShapeKnobs):
    """``num_chains`` of ``num_blocks`` blocks each; ``rejected_frac`` of the blocks are written again."""

    samples: ClassVar[str] = "num_chains"
    num_chains: int = 16
    num_blocks: int = 5
    rejected_frac: float = 0.4

    def __post_init__(self) -> None:
        check_above(self, "num_chains", 0)
        check_above(self, "num_blocks", 0)
        check_range(self, "rejected_frac", 0, 1)

    @property
    def choice(self) -> Choice:
        """The most frequent of the chains' answers, each as good as the large model's."""
        return Choice(by="vote", num_tries=self.num_chains)


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """In every round: drafts of all chains, their scores, and the rejected ones anew; all in step with each other."""
    prompt, n = problem.prompt_tokens, knobs.num_chains
    block = problem.answer_tokens / knobs.num_blocks
    before: tuple[str, ...] = ()
    rejected = 0
    for i in range(knobs.num_blocks):
        replaced = rejected * block  # blocks of the large model that the small one has to read
        rejected = _rejected_until(knobs, i + 1) - _rejected_until(knobs, i)
        path = i * block
        retained, first = prompt + n * path, prompt if i == 0 else 0.0
        yield Call(
            name=f"draft {i}",
            model="draft",
            after=before,
            count=n,
            context_tokens=prompt + path,
            distinct_tokens=retained,
            fresh_tokens=first + replaced,
            output_tokens=block,
        )
        yield Call(
            name=f"score {i}",
            after=(f"draft {i}",),
            count=n,
            context_tokens=prompt + path + block,
            distinct_tokens=retained + n * block,
            fresh_tokens=first + n * block,
            output_tokens=0.0,
        )
        before = (f"score {i}",)
        if rejected:
            yield Call(
                name=f"redo {i}",
                after=before,
                count=rejected,
                context_tokens=prompt + path,
                distinct_tokens=prompt + rejected * path,
                fresh_tokens=0.0,
                output_tokens=block,
            )
            before = (f"redo {i}",)


def _rejected_until(knobs: Knobs, rounds: int) -> int:
    """Blocks rejected in so many rounds: one chain of five loses two at 0.4, though no round of it loses 0.4."""
    return round(knobs.rejected_frac * knobs.num_chains * rounds)


TECHNIQUE = Technique(
    name="speculative-chains",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="Most tokens are written by the small model; the large one mostly reads, which it does many at a time.",
    costs="Rejected blocks are written twice, and in step all chains wait for the slowest of them every round.",
    claims=("atts-2025",),
    command="orrery estimate --draft-model NAME --reasoning {name}",
)
