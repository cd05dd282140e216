"""Tree search over steps: drawn trees, whose candidates a process verifier scores and a rule prunes and continues."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from orrery.base.knobs import check_above
from orrery.base.technique import Technique
from orrery.reasoning.choice import ShapeKnobs
from orrery.reasoning.graph import Call, Problem
from orrery.reasoning.tree.search import Growth, search, step_calls, taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs(ShapeKnobs):
    """``width`` candidates at first; an answer takes ``num_steps`` on average; ``prune`` names the rule.

    Of the candidates of a step that come before it, one repeats the idea with weight 1 each, or has a new one with
    weight ``new_idea_ratio``. Rules that weigh the cache take ``node_price_ratio`` for a node that is held and
    ``idea_price_ratio`` for an idea that is covered, those that weigh scores ``score_temperature_ratio``. Steps are
    cut at ``longest_step_ratio`` times their mean, and paths at ``longest_path_ratio`` times an answer.
    """

    samples: ClassVar[str] = "width"
    width: int = 16
    num_steps: float = 8.0
    prune: str = "balanced-tree"
    new_idea_ratio: float = 1.0
    node_price_ratio: float = 1.0
    idea_price_ratio: float = 1.4
    score_temperature_ratio: float = 0.2
    longest_step_ratio: float = 3.0
    longest_path_ratio: float = 3.0
    seed: int = 0

    def __post_init__(self) -> None:
        check_above(self, "width", 0)
        check_above(self, "num_steps", 1)
        check_above(self, "new_idea_ratio", 0)
        check_above(self, "score_temperature_ratio", 0)
        check_above(self, "longest_step_ratio", 0)
        check_above(self, "longest_path_ratio", 0)


PASSED_ON = ("node_price_ratio", "idea_price_ratio", "score_temperature_ratio")
"""Knobs of the pruning rule."""


def calls(problem: Problem, knobs: Knobs) -> Iterator[Call]:
    """The steps of one drawn search, each written for all candidates at once and then read by the verifier."""
    step_tokens = problem.answer_tokens / knobs.num_steps
    growth = Growth(
        width=knobs.width,
        prompt_tokens=problem.prompt_tokens,
        step_tokens=step_tokens,
        most_step_tokens=knobs.longest_step_ratio * step_tokens,
        most_tokens=knobs.longest_path_ratio * problem.answer_tokens,
        end_frac=1.0 / knobs.num_steps,
        new_idea_ratio=knobs.new_idea_ratio,
        seed=knobs.seed,
    )
    prices = {name: getattr(knobs, name) for name in PASSED_ON}
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
