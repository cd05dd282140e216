"""Guessing later tokens with trained prompt tokens: which guesses to check, and how many tokens a step yields.

A step that ends with k prompt tokens after its last sure token brings guesses for k later ones, each with a share of
holding by its rank. A tree is the likeliest paths through them. Every node of the tree may carry prompt tokens of its
own: only those of the last accepted node are used, and say how deep the next tree may be. So trees of depth 1, 2, …
follow each other as a chain of states; in its long run a step yields 1 + the mean of what its tree yields.
[parallel-prompt-decoding-2024]
"""

from dataclasses import dataclass
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Floats = NDArray[np.float64]
Ranked = tuple[tuple[float, ...], ...]
"""By distance, how often the first, second, … guess holds."""

Path = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTrees:
    """The trees of one limit, by depth: their nodes, prompt tokens, and what a step yields in the long run."""

    num_nodes: int  # guesses of the fullest tree
    num_tokens: int  # of a checking step: the sure token, guesses and prompt tokens
    step_tokens: float  # that a step yields, its sure one included
    reach_fracs: tuple[float, ...]  # of the steps: how many accept at least 1, 2, … guesses


@lru_cache(maxsize=256)
def likeliest(guesses: Ranked, depth: int, count: int) -> tuple[tuple[float, Path], ...]:
    """The ``count`` likeliest paths of up to ``depth`` guesses and their chances; a path comes after its own start."""
    found: list[tuple[float, Path]] = []
    heap: list[tuple[float, Path]] = [(-guesses[0][0], (0,))]
    while heap and len(found) < count:
        chance, path = heappop(heap)
        found.append((-chance, path))
        level, rank = guesses[len(path) - 1], path[-1]
        if rank + 1 < len(level) and level[rank] > 0.0:
            heappush(heap, (chance * level[rank + 1] / level[rank], (*path[:-1], rank + 1)))
        if len(path) < min(depth, len(guesses)):
            heappush(heap, (chance * guesses[len(path)][0], (*path, 0)))
    return tuple(found)


def _ends(tree: tuple[tuple[float, Path], ...]) -> dict[Path, float]:
    """How often each node is the last one accepted; the empty path where no guess holds."""
    chance = {(): 1.0} | {path: p for p, path in tree}
    for p, path in tree:
        chance[path[:-1]] -= p
    return chance


def prompt_trees(guesses: Ranked, most_tokens: int) -> PromptTrees:
    """The best trees whose checking step takes up to ``most_tokens``: how many guesses, and where prompt tokens go."""
    if most_tokens < 2 + len(guesses):
        raise ScenarioError(
            f"most_tokens = {most_tokens}; write {2 + len(guesses)} or more: a sure token, a guess, its prompt tokens."
        )
    tried = sorted({*range(1, most_tokens // 2, max(1, most_tokens // 16)), max(1, most_tokens // 3)})
    best = max((_trees(guesses, nodes, most_tokens) for nodes in tried), key=lambda t: t.step_tokens)
    return best


def _trees(guesses: Ranked, nodes: int, most_tokens: int) -> PromptTrees:
    """With so many guesses in every tree; what the limit leaves is for prompt tokens, the most useful first."""
    depths = range(1, len(guesses) + 1)
    trees = [likeliest(guesses, depth, nodes) for depth in depths]
    levels = np.array([[sum(p for p, path in tree if len(path) == k) for k in depths] for tree in trees])
    yields = levels.sum(axis=1)
    gains = np.diff(yields, prepend=0.0)
    moves, used = np.zeros((len(guesses) + 1, len(guesses) + 1)), 0
    moves[0, -1] = 1.0  # a step without guesses has room for all prompt tokens
    for state, tree in enumerate(trees, start=1):
        ends = _ends(tree)
        ranked = sorted(((p * g, path) for path, p in ends.items() for g in gains), key=lambda x: -x[0])
        carried = dict.fromkeys(ends, 0)
        for _, path in ranked[: max(most_tokens - 1 - len(tree), 0)]:
            carried[path] += 1
        for path, p in ends.items():
            moves[state, carried[path]] += p
        used = max(used, 1 + len(tree) + sum(carried.values()))
    share = _long_run(moves)
    return PromptTrees(
        num_nodes=max(len(tree) for tree in trees),
        num_tokens=used,
        step_tokens=1.0 + float(share[1:] @ yields),
        reach_fracs=tuple(float(x) for x in share[1:] @ levels),
    )


def _long_run(moves: Floats) -> Floats:
    """Share of the steps that each state has."""
    count = len(moves)
    rows = np.vstack([moves.T - np.eye(count), np.ones(count)])
    found = np.linalg.lstsq(rows, np.append(np.zeros(count), 1.0), rcond=None)[0]
    return found.astype(np.float64)
