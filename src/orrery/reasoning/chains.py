"""Chains drafted by a small model and checked by a large one: all in step, or each at its own pace.

In step, every round waits for the slowest draft, for the scores of all (they are ranked against each other), and for
the slowest block that is written again. At its own pace, a chain's block is rejected by a threshold that is known
beforehand, and nobody waits. Both models serve all their chains at once, the faster each the fewer there are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from math import inf

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Pace = Callable[[int], float]
"""Seconds of one token of a sequence when so many are written at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """Chains x rounds: tokens of each block, and which blocks are rejected."""

    block_tokens: Floats
    is_rejected: NDArray[np.bool_]

    @property
    def written_tokens(self) -> float:
        """Tokens that end up in chains."""
        return float(self.block_tokens.sum())


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """Speeds at which blocks are drafted, scored and rewritten."""

    draft: Pace
    target: Pace
    score_s_per_token: float
    score_base_s: float = 0.0


def drawn_rounds(
    num_chains: int,
    num_rounds: int,
    mean_tokens: float,
    spread_ratio: float,
    rejected_frac: float,
    random: np.random.Generator,
) -> Rounds:
    """Lognormal blocks with that mean and standard deviation of the logarithm; blocks rejected by lot."""
    mu = np.log(mean_tokens) - spread_ratio**2 / 2
    tokens = np.maximum(1.0, np.rint(random.lognormal(mu, spread_ratio, (num_chains, num_rounds))))
    return Rounds(block_tokens=tokens, is_rejected=random.random((num_chains, num_rounds)) < rejected_frac)


def draining_s(tokens: Floats, pace: Pace) -> float:
    """Time until all are written that start together, where those that are left get faster."""
    ordered = np.sort(tokens[tokens > 0])
    steps = np.diff(ordered, prepend=0.0)
    return float(sum(step * pace(ordered.size - i) for i, step in enumerate(steps) if step > 0))


def in_step_s(rounds: Rounds, models: Models) -> float:
    """All chains wait for each other three times a round."""
    total_s = 0.0
    for block, rejected in zip(rounds.block_tokens.T, rounds.is_rejected.T, strict=True):
        scored_s = models.score_base_s + models.score_s_per_token * float(block.sum())
        total_s += draining_s(block, models.draft) + scored_s + draining_s(block[rejected], models.target)
    return total_s


def alone_s(rounds: Rounds, models: Models) -> float:
    """The large model writes every chain from beginning to end."""
    return draining_s(rounds.block_tokens.sum(axis=1), models.target)


def own_pace_s(rounds: Rounds, models: Models) -> float:
    """Nobody waits: from event to event, every chain drafts, is scored or is written again at the pace of the moment.

    All chains at a stage write equally fast, so a stage has a clock in tokens, and a chain that enters it knows what
    the clock will show when it leaves.
    """
    count = rounds.block_tokens.shape[1]
    paces = (models.draft, _scoring(models, float(rounds.block_tokens.mean())), models.target)
    clocks, now_s = [0.0] * len(paces), 0.0
    stages: list[list[tuple[float, int, int]]] = [[(float(t), i, 0) for i, t in enumerate(rounds.block_tokens[:, 0])]]
    stages += [[], []]  # (clock when it leaves, chain, round) of those that are drafted, scored, written again
    heapify(stages[0])
    while any(stages):
        each_s = [pace(max(len(stage), 1)) for pace, stage in zip(paces, stages, strict=True)]
        waits_s = [(stage[0][0] - clocks[k]) * each_s[k] if stage else inf for k, stage in enumerate(stages)]
        first = waits_s.index(min(waits_s))
        now_s += waits_s[first]
        for k, stage in enumerate(stages):
            if stage:
                clocks[k] += waits_s[first] / each_s[k] if k != first else stage[0][0] - clocks[k]
        _, chain, at = heappop(stages[first])
        stage, at = _next(first, at, bool(rounds.is_rejected[chain, at]))
        if at < count:
            heappush(stages[stage], (clocks[stage] + float(rounds.block_tokens[chain, at]), chain, at))
    return now_s


def _scoring(models: Models, mean_tokens: float) -> Pace:
    """Seconds a token: those that are scored together share the reading and one pass over the weights."""
    return lambda count: models.score_s_per_token * count + models.score_base_s / mean_tokens


def _next(stage: int, at: int, is_rejected: bool) -> tuple[int, int]:
    """Draft, then score, then (where rejected) write again, then the next round."""
    if stage == 0:
        return 1, at
    if stage == 1 and is_rejected:
        return 2, at
    return 0, at + 1
