"""DualPipe: micro-batches enter at both ends of the pipeline, and a forward pass runs beside each backward pass."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from orrery.base.technique import Technique
from orrery.training.schedules.schedule import (
    B0,
    B1,
    BW0,
    BW1,
    F0,
    F1,
    W0,
    W1,
    Count,
    PassSlot,
    Piece,
    Pipeline,
    Schedule,
    Sizes,
    as_floats,
    numbered,
)


def rule(pp: Count, vp: Count, num_micro_batches: Count) -> Pipeline:
    """Idle (pp/2 - 1)(F&B + B' - 3 W), pp + 1 micro-batches in flight, two copies of the parameters. [deepseek-v3-2024]

    B' = B + W is the whole backward pass and F&B the block of a forward and a backward pass side by side, here as long
    as both, F + B + W: (pp/2 - 1)(F + 2 B - W) in all. Played out, never less than (pp/2 - 1) 2 F. The ranks at the
    ends run m - 3 pp/2 + 1 such blocks, those in the middle pp/2 - 1 more.
    """
    p, _, m = as_floats(pp, vp, num_micro_batches)
    half = p / 2.0 - 1.0
    return Pipeline(
        forward_idle_ratio=half,
        backward_idle_ratio=2.0 * half,
        weight_idle_ratio=-half,
        fill_forward_ratio=2.0 * half,
        fill_backward_ratio=np.zeros_like(p),
        is_parallelogram=False,
        in_flight_ratio=np.minimum(m, p + 1.0),
        last_in_flight_ratio=np.minimum(m, p + 1.0),
        parameter_copies_ratio=np.full_like(p, 2.0),
        sends_ratio=np.ones_like(p),
        joined_ratio=np.maximum(m - 1.5 * p + 1.0, 0.0) / np.maximum(m, 1.0),
    )


def order(pp: int, vp: int, num_micro_batches: int, rank: int) -> list[Piece]:
    """The first half of the micro-batches from rank 0 on, the second from the last rank; ranks mirror each other."""
    other = int(rank >= pp // 2)  # a rank of the second half is nearer to the other end
    letters = [PassSlot(kind, near ^ other) for kind, near in _letters(pp, num_micro_batches, min(rank, pp - 1 - rank))]
    pieces = numbered(letters, first=(0, num_micro_batches // 2))
    return [*(_beside(piece, following) for piece, following in pairwise(pieces)), pieces[-1]]


def _letters(pp: int, num_micro_batches: int, depth: int) -> Iterator[PassSlot]:
    """Pieces of the rank that is ``depth`` ranks from its end; chunk 0 comes from there, chunk 1 from the far end.

    The steps: fill from the near end, from both ends, go back with what came from afar; a forward pass beside each
    whole backward pass; drain, the last weight gradients apart.
    """
    inner = pp // 2 - 1 - depth  # ranks between here and the middle
    both = depth + 1
    yield from (F0,) * (2 * inner)
    yield from (F0, F1) * both
    yield from (B1, W1, F1) * inner
    yield from (F0, BW1, F1, BW0) * (num_micro_batches // 2 - pp + both)
    yield from (BW1, F1, BW0) * inner
    whole = (BW1, BW0) * both
    split = [PassSlot("B", letter.chunk) for letter in whole[both:]]
    weights = [*(PassSlot("W", letter.chunk) for letter in split), *(W0,) * inner]
    yield from whole[:both]
    yield from split
    for i in range(inner):
        yield from (weights[i], B0)
    yield from weights[inner:]


def _beside(piece: Piece, following: Piece) -> Piece:
    """A forward pass that is followed by a whole backward pass runs beside it."""
    return replace(piece, is_joined=True) if (piece.kind, following.kind) == ("F", "BW") else piece


TECHNIQUE = Technique(
    name="dualpipe",
    extension_point="training.schedule",
    rule=Schedule(
        numbers=rule,
        order=order,
        placement="mirrored",
        sizes=Sizes(pp_step=2, micro_batch_step=2, least_rounds=2),
    ),
    gains="Under half of 1F1B's idle time, and always a forward pass to hide a backward pass's exchanges behind.",
    costs="Every rank holds the parameters of two stages, and one more micro-batch than 1F1B.",
    claims=("deepseek-v3-2024",),
)
