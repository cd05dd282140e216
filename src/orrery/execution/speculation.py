"""Guessing tokens and checking them at once: how many a checking step yields, and what it checks and costs.

With acceptance a of each guess (independent of the others: assumed), k guesses in a row yield (1 - a^(k+1))/(1 - a)
tokens a step, the one that the model adds itself included [leviathan-2023]. In a tree every accepted node gets w
guesses at its level, one of which survives with 1 - (1 - a)^w [specinfer-2023].
"""

from dataclasses import dataclass, replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.batch import decodes_of
from orrery.execution.draft_head import drafting_s as head_drafting_s
from orrery.execution.host import launched_s, wall_s
from orrery.execution.layout import DRAFT_METHODS, Deployment
from orrery.execution.step import step

KINDS = ("draft", "tree", "prompt-lookup", "prompt-tokens", *DRAFT_METHODS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Speculative decoding: drafted tokens, their acceptance, and the step time of the draft model.

    ``draft_tokens`` guesses in a row; a tree has ``tree_widths`` guesses at each level instead. A guessing step takes
    ``draft_base_s`` + ``draft_s_per_sequences`` x sequences (x nodes of a tree's level); looking up costs nothing.
    """

    kind: str = "draft"
    draft_tokens: int = 4
    acceptance_frac: float = 0.7
    acceptance_fracs: tuple[float, ...] = ()  # by position, in place of one for all
    tree_widths: tuple[int, ...] = ()
    level_fracs: tuple[float, ...] = ()  # of a searched tree: the chance of each level to hold, in place of widths
    checked_tokens: int = 0  # of a searched tree: tokens that a step verifies beside the sure one
    draft_base_s: float = 0.0
    draft_s_per_sequences: float = 0.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ScenarioError(f"speculation kind = {self.kind!r}; write one of {', '.join(KINDS)}.")
        if not 0.0 <= self.acceptance_frac <= 1.0:
            raise ScenarioError(f"acceptance_frac = {self.acceptance_frac:g}; write 0 to 1.")
        if self.acceptance_fracs and len(self.acceptance_fracs) != len(self.widths):
            raise ScenarioError(
                f"acceptance_fracs: {len(self.acceptance_fracs)} for {len(self.widths)} positions; write one for each."
            )
        if self.level_fracs:
            return
        if self.kind == "tree" and (not self.tree_widths or min(self.tree_widths) < 1):
            raise ScenarioError(
                f"tree_widths = {self.tree_widths}; write the guesses at each level, such as (4, 2, 1)."
            )
        if self.kind != "tree" and self.draft_tokens < 1:
            raise ScenarioError(f"draft_tokens = {self.draft_tokens}; write 1 or more.")

    @property
    def widths(self) -> tuple[int, ...]:
        """Guesses that an accepted node gets, level by level."""
        if self.level_fracs:
            return (1,) * len(self.level_fracs)
        return self.tree_widths if self.kind == "tree" else (1,) * self.draft_tokens


def level_chances(speculation: Speculation) -> tuple[float, ...]:
    """The chance of each level to hold where those before it did: one of its guesses is right."""
    if speculation.level_fracs:
        return speculation.level_fracs
    widths = speculation.widths
    accepted = speculation.acceptance_fracs or (speculation.acceptance_frac,) * len(widths)
    return tuple(1.0 - (1.0 - a) ** width for a, width in zip(accepted, widths, strict=True))


def level_nodes(speculation: Speculation) -> tuple[int, ...]:
    """Guesses at each level of the tree; 1 each in a row."""
    nodes, found = 1, list[int]()
    for width in speculation.widths:
        nodes *= width
        found.append(nodes)
    return tuple(found)


def verified_tokens(speculation: Speculation) -> int:
    """Tokens of one sequence in a checking step: the last sure one and every guess."""
    return 1 + (speculation.checked_tokens or sum(level_nodes(speculation)))


def drafting_s(speculation: Speculation, sequences: float) -> float:
    """Time to guess for so many sequences: one step of the guessing model for each level, nothing for a look-up."""
    if speculation.kind == "prompt-lookup":
        return 0.0
    inputs = (1, *level_nodes(speculation)[:-1])
    slope_s = speculation.draft_s_per_sequences * sequences
    return sum(speculation.draft_base_s + slope_s * nodes for nodes in inputs)


def draft_step_s(draft: Deployment, context_tokens: int, sequences: int) -> tuple[float, float]:
    """(base, per sequence) of the guessing model's decode step, host included, through 1 and ``sequences`` of them."""
    batch = decodes_of(np.array([1, max(2, sequences)]), context_tokens)
    counts = batch.decode_sequences
    times_s = wall_s(draft.engine, step(draft, batch).time_s, counts, launched_s(draft, batch))
    one_s, many_s = (float(t) for t in times_s)
    slope_s = max(0.0, (many_s - one_s) / float(counts[1] - 1))
    return one_s - slope_s, slope_s


def with_draft(
    speculation: Speculation, draft: Deployment, *, context_tokens: int = 1024, sequences: int = 64
) -> Speculation:
    """``speculation`` with the step times of a guessing model."""
    base_s, slope_s = draft_step_s(draft, context_tokens, sequences)
    return replace(speculation, draft_base_s=base_s, draft_s_per_sequences=slope_s)


def of_head(deployment: Deployment, *, context_tokens: int = 1024, sequences: int = 64) -> Speculation | None:
    """Speculation by a deployment's draft head, with the time of its passes; None without one."""
    head = deployment.draft_head
    if head is None:
        return None
    base_s, slope_s = head_drafting_s(deployment, context_tokens, sequences)
    if head.level_nodes:
        levels = head.num_tokens
        return Speculation(
            kind=head.method,
            level_fracs=head.acceptance_fracs,
            checked_tokens=head.num_checked,
            draft_base_s=base_s / levels,
            draft_s_per_sequences=slope_s / levels,
        )
    return Speculation(
        kind=head.method,
        draft_tokens=head.num_tokens,
        acceptance_fracs=head.acceptance_fracs,
        draft_base_s=base_s / head.num_tokens,
        draft_s_per_sequences=slope_s / head.num_tokens,
    )
