"""Draft trees: which draft tokens a step verifies at once, chosen for a device and a number of sequences.

Of the draft tokens at a position the one of rank r is right with its own share, where those before it were. The tree of
n tokens that yields most holds the n likeliest paths [sequoia-2024]. A longer step yields more tokens and takes longer,
so each size and depth is priced on the deployment, and the one with the most tokens a second wins: devices with much
arithmetic for their bandwidth take larger trees, large batches smaller ones.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.execution.batch import decodes_of
from orrery.execution.draft_head import with_drafting
from orrery.execution.host import launched_s, wall_s
from orrery.execution.layout import Deployment, DraftHead
from orrery.execution.prompt_trees import Ranked, likeliest, prompt_trees
from orrery.models.model import Model

SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
"""Draft tokens that are tried; with trained prompt tokens, tokens that a step verifies."""

NUM_RANKS = 8
"""Ranks that are considered where one share for each position is all that is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One tree on the deployment: what its step yields and takes, and the tokens a second over those without drafts."""

    head: DraftHead
    step_s: float
    speedup_ratio: float


def ranked(acceptance_fracs: Sequence[float]) -> Ranked:
    """Shares by rank where one for each position is known: every further draft token is right as often as the first,
    where that is wrong, so the r-th one holds with a (1 - a)^(r - 1) [specinfer-2023].
    """
    return tuple(tuple(a * (1.0 - a) ** r for r in range(NUM_RANKS)) for a in acceptance_fracs)


def checked_ranks(guesses: Ranked) -> Ranked:
    """The shares, where they can be: falling from 0 to 1 by rank, and together at most 1."""
    for level, shares in enumerate(guesses, 1):
        if not shares or min(shares) < 0.0 or sum(shares) > 1.0 + 1e-9 or list(shares) != sorted(shares, reverse=True):
            raise ScenarioError(
                f"acceptance_by_position: position {level} has {'/'.join(f'{s:g}' for s in shares)}; write shares of "
                "0 to 1 by rank, the largest first, together at most 1."
            )
    return guesses


def widened(guesses: Ranked, widths: Sequence[int], draft_model: Model | None = None) -> DraftHead:
    """The full tree with so many draft tokens under each accepted one."""
    nodes, counts = 1, list[int]()
    for width in widths:
        nodes *= width
        counts.append(nodes)
    fracs = tuple(min(1.0, sum(shares[:w])) for shares, w in zip(guesses, widths, strict=True))
    return DraftHead(method="tree", acceptance_fracs=fracs, level_nodes=tuple(counts), draft_model=draft_model)


def tree_heads(guesses: Ranked, draft_model: Model | None = None) -> Iterator[DraftHead]:
    """The likeliest tree of every size and depth."""
    seen = set[tuple[tuple[int, ...], tuple[float, ...]]]()
    for depth in range(1, len(guesses) + 1):
        for size in SIZES:
            tree = likeliest(guesses, depth, size)
            reach = [sum(p for p, path in tree if len(path) == k) for k in range(1, depth + 1)]
            nodes = [sum(len(path) == k for _, path in tree) for k in range(1, depth + 1)]
            levels = sum(n > 0 for n in nodes)
            shape = tuple(nodes[:levels]), ratios(reach[:levels])
            if shape not in seen:
                seen.add(shape)
                yield DraftHead(method="tree", level_nodes=shape[0], acceptance_fracs=shape[1], draft_model=draft_model)


def prompt_heads(guesses: Ranked) -> Iterator[DraftHead]:
    """The best trees with trained prompt tokens for every number of tokens that a step may verify."""
    for size in SIZES:
        if size >= 2 + len(guesses):
            trees = prompt_trees(guesses, size)
            extra = trees.num_tokens - 1 - trees.num_nodes
            nodes = (trees.num_nodes, *(0,) * (len(guesses) - 1))
            yield DraftHead(
                method="prompt-tokens",
                level_nodes=nodes,
                prompt_tokens=extra,
                acceptance_fracs=ratios(trees.reach_fracs),
            )


def ratios(reach: Sequence[float]) -> tuple[float, ...]:
    """The chance of each level to hold where those before it did, from how often each is reached."""
    before = (1.0, *reach[:-1])
    return tuple(min(1.0, max(0.0, now / last)) if last > 0.0 else 0.0 for now, last in zip(reach, before, strict=True))


def tried_on(
    deployment: Deployment, heads: Sequence[DraftHead], *, sequences: int, context_tokens: int
) -> tuple[Tried, ...]:
    """Every head on the deployment with so many sequences in a step."""
    batch = decodes_of(np.array([max(1, sequences)]), max(1, context_tokens))

    def step_s(drafting: Deployment) -> float:
        done = with_drafting(drafting, batch)
        return float(wall_s(deployment.engine, done.time_s, batch.num_rows, launched_s(deployment, batch))[0])

    plain_s = step_s(replace(deployment, draft_head=None))
    found = list[Tried]()
    for head in heads:
        each_s = step_s(replace(deployment, draft_head=head))
        found.append(Tried(head=head, step_s=each_s, speedup_ratio=head.tokens_per_step * plain_s / each_s))
    return tuple(found)


def uneven_heads(model: Model, tp: int) -> int:
    """Attention heads of a layer that so many devices cannot share; 0 where all can be."""
    heads = (b.mixer.num_heads for b in model.blocks if b.mixer and b.mixer.num_heads > 0)
    return next((count for count in heads if count % tp), 0)


def best_of(tried: Sequence[Tried]) -> Tried:
    """The most tokens a second; of equal ones the fewest draft tokens."""
    return max(tried, key=lambda t: (t.speedup_ratio, -t.head.num_checked))
