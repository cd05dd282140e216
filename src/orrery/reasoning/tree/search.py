"""A search over drawn trees: steps are written, scored by a process verifier, pruned by a rule and continued.

Scores are uniform; a candidate repeats the idea of one before it in the same step or has a new one (a Chinese
restaurant); a step ends the answer with a fixed chance. What is measured is the cache, which depends on nothing else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.extension_points import ExtensionPoint
from orrery.reasoning.graph import Call
from orrery.reasoning.tree import techniques
from orrery.reasoning.tree.grown import Front, Grown

PRUNING = ExtensionPoint(name="reasoning.prune", folder=techniques, noun="pruning rule")

Rule = Callable[[Front, int, Any], NDArray[np.int64]]
"""How many continuations each candidate of a front gets, of so many in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """Growth of a tree: its first width, and the shape of a step."""

    width: int
    prompt_tokens: float
    step_tokens: float  # mean; lengths are exponential, cut at ``most_step_tokens``
    most_step_tokens: float
    most_tokens: float  # of a whole path
    end_frac: float  # steps that end their answer
    new_idea_ratio: float = 1.0  # weight of a new idea beside one for each candidate that came before
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a search: the candidates that were written, and the cache that they and their paths keep."""

    num_candidates: int
    kept_tokens: float
    path_tokens: float  # mean context of a candidate
    step_tokens: float  # mean length of the step itself


def search(growth: Growth, rule: str, **knobs: float) -> list[Step]:
    """The steps of one search under a pruning rule."""
    technique = PRUNING.get(rule)
    settings, random = technique.knobs(**knobs), np.random.default_rng(growth.seed)
    tree, width, steps = Grown(prompt_tokens=growth.prompt_tokens), growth.width, list[Step]()
    parents, counts = np.array([0]), np.array([width])
    while width > 0 and counts.sum() > 0:
        nodes, ideas = _continued(tree, growth, parents, counts, random)
        steps.append(_measured(tree, nodes))
        is_over = random.random(nodes.size) < growth.end_frac
        is_over |= tree.path_tokens(nodes) - growth.prompt_tokens >= growth.most_tokens
        width -= int(is_over.sum())
        nodes, ideas = nodes[~is_over], ideas[~is_over]
        if width <= 0 or nodes.size == 0:
            break
        front = _front(tree, nodes, ideas, ceil(sqrt(growth.width)), random)
        parents, counts = nodes, technique.rule(front, width, settings)
    return steps


def taken(rule: str, knobs: Mapping[str, float]) -> dict[str, float]:
    """Return those of some knobs that a pruning rule has."""
    own = {f.name for f in fields(PRUNING.get(rule).knobs)}
    return {name: value for name, value in knobs.items() if name in own}


def _continued(
    tree: Grown, growth: Growth, parents: NDArray[np.int64], counts: NDArray[np.int64], random: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """New nodes under each parent, and the idea of each: a number that candidates of one idea share."""
    nodes, ideas = list[int](), list[int]()
    for parent in np.repeat(parents, counts):
        length = min(growth.most_step_tokens, max(1.0, round(random.exponential(growth.step_tokens))))
        nodes.append(tree.add(int(parent), length))
        is_new = random.random() * (len(ideas) + growth.new_idea_ratio) >= len(ideas)
        ideas.append(nodes[-1] if is_new else ideas[int(random.integers(len(ideas)))])
    return np.array(nodes, dtype=np.int64), np.array(ideas, dtype=np.int64)


def _front(
    tree: Grown, nodes: NDArray[np.int64], ideas: NDArray[np.int64], num_branches: int, random: np.random.Generator
) -> Front:
    """Candidates with fresh scores. The nodes of the first step, numbered from 1, are dealt out into the subtrees."""
    paths = np.array([tree.paths[i] for i in nodes.tolist()], dtype=np.int64)
    branches = (paths[:, 1] if paths.shape[1] > 1 else nodes) % num_branches
    return Front(scores_frac=random.random(nodes.size), paths=paths, ideas=ideas, branches=branches)


def _measured(tree: Grown, nodes: NDArray[np.int64]) -> Step:
    leaves: list[int] = nodes.tolist()
    return Step(
        num_candidates=len(leaves),
        kept_tokens=tree.kept_tokens(nodes),
        path_tokens=sum(tree.context_tokens[i] for i in leaves) / len(leaves),
        step_tokens=sum(tree.tokens[i] for i in leaves) / len(leaves),
    )


def step_calls(steps: list[Step], num_searches: int) -> tuple[Call, ...]:
    """The steps of ``num_searches`` like searches side by side: written by the solver, read by the verifier."""
    calls, before = list[Call](), tuple[str, ...]()
    for i, step in enumerate(steps):
        count, new = num_searches * step.num_candidates, step.num_candidates * step.step_tokens
        above = num_searches * (step.kept_tokens - new)
        calls.append(
            Call(
                name=f"step {i}",
                after=before,
                count=count,
                context_tokens=step.path_tokens,
                distinct_tokens=above,
                fresh_tokens=above if i == 0 else 0.0,
                output_tokens=step.step_tokens,
            )
        )
        calls.append(
            Call(
                name=f"score {i}",
                model="verifier",
                after=(f"step {i}",),
                count=count,
                context_tokens=step.path_tokens + step.step_tokens,
                distinct_tokens=above + num_searches * new,
                fresh_tokens=num_searches * new + (above if i == 0 else 0.0),
                output_tokens=0.0,
            )
        )
        before = (f"score {i}",)
    return tuple(calls)
