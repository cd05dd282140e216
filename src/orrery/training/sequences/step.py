"""A training step over one batch of sequences, on a mesh for the longest or with ranks for each. [bytescale-2025]

Static: the ranks form data-parallel groups, each as large as the longest sequence needs. Sequences are packed to
windows of that length, which every group cuts evenly over its ranks, so that short ones pass the ring too; groups take
windows in turn and wait for the one with the most attention.

Hybrid: a sequence gets the ranks that it needs (see ``degree``), and more where it alone would outlast a fair share of
the batch; short ones are put together for one rank without any exchange. Ranks take as many pieces as fit their time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.training.sequences.balance import RankGroup, finish_s, packed, spread
from orrery.training.sequences.degree import least_degree
from orrery.training.sequences.lengths import Floats, Ints
from orrery.training.sequences.trainer import (
    ATTENTION_BACKWARD_RATIO,
    Trainer,
    Work,
    attention_s,
    products_many_s,
    split_work,
    sync_s,
)

OUTLAST_RATIOS = (0.5, 1.0, 2.0, 4.0, 8.0, inf)
"""How many times a fair share of the step one sequence may take before it gets more ranks."""

ROOM_RATIO = 1.25
"""Micro-batches of short sequences against the fewest that hold them, so that their times come out even."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """Seconds of a step, as means over the ranks: they add up to ``time_s``."""

    products_s: float
    attention_s: float
    ring_s: float
    idle_s: float
    sync_s: float
    most_degree: int  # ranks of the largest group
    num_pieces: int  # micro-batches of all groups

    @property
    def time_s(self) -> float:
        """The whole step."""
        return self.products_s + self.attention_s + self.ring_s + self.idle_s + self.sync_s


def static_step(trainer: Trainer, lengths: Ints, context_tokens: int) -> StepTime:
    """Groups for sequences of ``context_tokens``, and windows of as many, one after the other."""
    degree = least_degree(trainer, context_tokens, 0.0, offloads=False)
    num_groups = trainer.num_ranks // degree
    if not num_groups:
        raise ScenarioError(
            f"static mesh: {degree} ranks for the longest sequence, {trainer.num_ranks} there are; add more."
        )
    attention = attention_s(trainer, lengths)
    loads, works = np.zeros(num_groups), list[tuple[Work, int]]()
    for number, window in enumerate(packed(lengths, context_tokens)):
        work = split_work(trainer, int(lengths[window].sum()), float(attention[window].sum()), degree)
        loads[number % num_groups] += work.time_s
        works.append((work, degree))
    return _step(trainer, works, float(loads.max()))


def hybrid_step(trainer: Trainer, lengths: Ints, *, offloads: bool = True, balances: bool = True) -> StepTime:
    """Ranks by length. Without ``balances`` sequences get the fewest ranks, and short ones are packed as they come.

    How long one sequence may take before it gets more ranks is tried out, as is keeping activations on the devices.
    """
    attention = attention_s(trainer, lengths)
    is_long = lengths > trainer.capacity_tokens
    short = _short_works(trainer, lengths[~is_long], attention[~is_long], balances)
    alone = list(zip(lengths[is_long].tolist(), attention[is_long].tolist(), strict=True))
    fair_s = _fair_share_s(trainer, lengths, attention)
    tried: list[StepTime] = []
    for option in (True, False) if offloads and balances else (offloads,):
        degrees = [least_degree(trainer, *one, offloads=option) for one in alone]
        for ratio in OUTLAST_RATIOS if balances else (inf,):
            tried.append(_dealt(trainer, alone, degrees, short, ratio * fair_s))
    return min(tried, key=lambda step: step.time_s)


def _dealt(
    trainer: Trainer, alone: list[tuple[int, float]], degrees: list[int], short: list[Work], limit_s: float
) -> StepTime:
    """One way to deal out the ranks to long sequences, (tokens, attention) each, and short ones' micro-batches."""
    works = [(work, 1) for work in short]
    for (tokens, attention), least in zip(alone, degrees, strict=True):
        degree = _raised(trainer, tokens, attention, least, limit_s)
        works.append((split_work(trainer, tokens, attention, degree), degree))
    done = finish_s([RankGroup(time_s=w.time_s, degree=degree) for w, degree in works], trainer.num_ranks)
    return _step(trainer, works, float(done.max()))


def _fair_share_s(trainer: Trainer, lengths: Ints, attention: Floats) -> float:
    """The time of a step that wastes nothing: all work on one rank over the ranks."""
    tokens = int(lengths.sum())
    return split_work(trainer, ceil(tokens / trainer.num_ranks), float(attention.sum()) / trainer.num_ranks, 1).time_s


def _raised(trainer: Trainer, tokens: int, attention: float, degree: int, limit_s: float) -> int:
    """Twice the ranks as long as the sequence outlasts its limit and gains by it."""
    while 2 * degree <= trainer.num_ranks:
        now, twice = (split_work(trainer, tokens, attention, x).time_s for x in (degree, 2 * degree))
        if now <= limit_s or twice >= now:
            break
        degree *= 2
    return degree


def _short_works(trainer: Trainer, lengths: Ints, attention: Floats, balances: bool) -> list[Work]:
    """Micro-batches of sequences that fit one rank."""
    if not len(lengths):
        return []
    limit = trainer.capacity_tokens
    if balances:
        per_token_s = float(products_many_s(trainer, np.array([limit]))[0]) / limit
        costs_s = lengths * per_token_s + (1.0 + ATTENTION_BACKWARD_RATIO) * attention
        bins = spread(costs_s, lengths, ceil(ROOM_RATIO * int(lengths.sum()) / limit), limit)
    else:
        bins = packed(lengths, limit)
    return [split_work(trainer, int(lengths[b].sum()), float(attention[b].sum()), 1) for b in bins]


def _step(trainer: Trainer, works: Sequence[tuple[Work, int]], busy_s: float) -> StepTime:
    """Means over the ranks; what is left of the time until the last is done is idle."""
    ranks = trainer.num_ranks
    products = sum(w.products_s * degree for w, degree in works) / ranks
    attention = sum(w.attention_s * degree for w, degree in works) / ranks
    ring = sum(w.ring_s * degree for w, degree in works) / ranks
    return StepTime(
        products_s=products,
        attention_s=attention,
        ring_s=ring,
        idle_s=busy_s - products - attention - ring,
        sync_s=sync_s(trainer),
        most_degree=max(degree for _, degree in works),
        num_pieces=len(works),
    )
