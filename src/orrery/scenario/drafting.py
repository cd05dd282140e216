"""The drafting of a scenario: its kind, how many tokens it guesses, and how often they hold."""

from orrery.base.errors import ScenarioError
from orrery.execution.draft_head import usual_acceptances
from orrery.execution.layout import DRAFT_METHODS, TREE_METHODS, DraftHead
from orrery.scenario.acceptance import Ranked, read_acceptance
from orrery.scenario.schema import Scenario

DRAFT_TOKENS = {"mtp": 1, "eagle": 3, "eagle3": 3}
"""Guesses a step where nobody says: an MTP layer guesses the token that it was trained for."""

ROWS = ("draft_tokens", "draft_model", "draft_tree")
"""Settings of drafts that no head of the model makes."""


def draft_head_of(scenario: Scenario) -> DraftHead | None:
    """The head that is asked for; None without one, and for trees, which are chosen for a deployment and its batch."""
    method, listed = scenario.draft, read_acceptance(scenario.acceptance_by_position)
    if method is None:
        if listed and not any(getattr(scenario, name) is not None for name in ROWS):
            raise ScenarioError(
                'acceptance_by_position: no head guesses; write draft = "mtp" (or eagle, eagle3, tree, prompt-tokens).'
            )
        return None
    if method not in (*DRAFT_METHODS, *TREE_METHODS):
        raise ScenarioError(f"draft: got {method!r}; write one of {', '.join((*DRAFT_METHODS, *TREE_METHODS))}.")
    if listed and scenario.acceptance is not None:
        raise ScenarioError("acceptance and acceptance_by_position exclude each other; keep one.")
    if method in TREE_METHODS:
        return None
    for name in ("draft_model", "draft_tree"):
        if getattr(scenario, name) is not None:
            raise ScenarioError(f"draft and {name} exclude each other; keep one.")
    return _in_a_row(scenario, method, listed)


def _in_a_row(scenario: Scenario, method: str, listed: Ranked) -> DraftHead:
    if any(len(row) > 1 for row in listed):
        raise ScenarioError(
            f'acceptance_by_position: draft = "{method}" makes one draft token at a position; write one share for '
            'each, such as 0.85,0.7, or draft = "tree".'
        )
    shares = tuple(row[0] for row in listed)
    count = scenario.draft_tokens or len(shares) or DRAFT_TOKENS[method]
    if shares and len(shares) != count:
        raise ScenarioError(f"acceptance_by_position: {len(shares)} shares for draft_tokens = {count}; write {count}.")
    if scenario.acceptance is not None:
        shares = (scenario.acceptance,) * count
    return DraftHead(method=method, acceptance_fracs=shares or usual_acceptances(method, count))


def draft_notes(scenario: Scenario, head: DraftHead | None) -> tuple[str, ...]:
    """Assumptions about a draft head."""
    if head is None or head.method in TREE_METHODS:
        return ()
    shares = ", ".join(f"{a:.2g}" for a in head.acceptance_fracs)
    given = scenario.acceptance is not None or scenario.acceptance_by_position is not None
    basis = "given" if given else "assumed from published averages: measure it on your traffic"
    yields = f"{head.tokens_per_step:.3g} tokens a step"
    return (f"draft: {head.method}, {head.num_tokens} guessed a step, of which hold {shares} ({basis}): {yields}",)
