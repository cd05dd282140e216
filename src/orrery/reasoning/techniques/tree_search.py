"""Tree search over steps: drawn trees, whose candidates a process verifier scores and a rule prunes and continues."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.reasoning.choice import ShapeKnobs
from orrery.reasoning.graph import Call, Problem
from orrery.reasoning.tree.search import Growth, search, step_calls, taken

LONGEST_RATIO = 3.0
"""Steps are cut at so many times their mean, and paths at so many times an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(ShapeKnobs):
    """``width`` candidates at first; an answer takes ``num_steps`` on average; ``prune`` names the rule.

    Of the candidates of a step that come before it, one repeats the idea with weight 1 each, or has a new one with
    weight ``new_idea_ratio``. Rules that weigh the cache take ``node_price_ratio`` for a node that is held and
    ``idea_price_ratio`` for an idea that is covered.
    """

    samples: ClassVar[str] = "width"
    width: int = 16
    num_steps: float = 8.0
    prune: str = "balanced-tree"
    new_idea_ratio: float = 1.0
    node_price_ratio: float = 1.0
    idea_price_ratio: float = 1.4
    seed: int = 0

    def __post_init__(self) -> None:
        check_above(self, "width", 0)
        check_above(self, "num_steps", 1)
        check_above(self, "new_idea_ratio", 0)


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """The steps of one drawn search, each written for all candidates at once and then read by the verifier."""
    step_tokens = problem.answer_tokens / knobs.num_steps
    growth = Growth(
        width=knobs.width,
        prompt_tokens=problem.prompt_tokens,
        step_tokens=step_tokens,
        most_step_tokens=LONGEST_RATIO * step_tokens,
        most_tokens=LONGEST_RATIO * problem.answer_tokens,
        end_frac=1.0 / knobs.num_steps,
        new_idea_ratio=knobs.new_idea_ratio,
        seed=knobs.seed,
    )
    prices = {"node_price_ratio": knobs.node_price_ratio, "idea_price_ratio": knobs.idea_price_ratio}
    yield from step_calls(search(growth, knobs.prune, **taken(knobs.prune, prices)), 1)


TECHNIQUE = Technique(
    name="tree-search",
    extension_point="reasoning.shape",
    rule=calls,
    knobs=Knobs,
    gains="Steps are judged one by one, and what lives on shares the cache of what it has in common.",
    costs="Every step waits for its slowest candidate and for the verifier; how much is shared hangs on the rule.",
    claims=("ets-2025", "wu-2024-rebase"),
)
