"""Interleaved 1F1B: each rank holds vp chunks of layers, far apart, so that the pipeline fills vp times as fast."""

from typing import Literal

import numpy as np

from orrery.base.technique import Technique
from orrery.training.schedules.schedule import Count, Piece, Pipeline, Schedule, Sizes, as_floats

MAX_CHUNKS = 64
"""Chunks of a rank; assumed, more than any model has layers for."""


def rule(pp: Count, vp: Count, num_micro_batches: Count) -> Pipeline:
    """Idle (pp - 1)(F + B + W)/vp; rank 0 holds 2 (pp - 1) + (vp - 1) pp + 1 chunks, or all. [megatron-lm-2021]

    That is pp (1 + (pp - 1)/(pp vp)) micro-batches. [korthikanti-2022]
    """
    p, v, m = as_floats(pp, vp, num_micro_batches)
    idle = (p - 1.0) / v
    return Pipeline(
        forward_idle_ratio=idle,
        backward_idle_ratio=idle,
        weight_idle_ratio=idle,
        fill_forward_ratio=idle,
        fill_backward_ratio=np.zeros_like(p),
        is_parallelogram=False,
        in_flight_ratio=np.minimum(m, p + idle),
        last_in_flight_ratio=np.minimum(m, p - idle),
        parameter_copies_ratio=np.ones_like(p),
        sends_ratio=v,
    )


def order(pp: int, vp: int, num_micro_batches: int, rank: int) -> list[Piece]:
    """pp micro-batches through a chunk, then the same through the next; back in the same way, last chunk first."""
    total = num_micro_batches * vp
    ahead = min(2 * (pp - 1 - rank) + (vp - 1) * pp, total)
    pieces = [_piece("F", i, pp, vp) for i in range(ahead)]
    for i in range(total):
        if i + ahead < total:
            pieces.append(_piece("F", i + ahead, pp, vp))
        pieces.append(_piece("BW", i, pp, vp))
    return pieces


def _piece(kind: Literal["F", "BW"], index: int, pp: int, vp: int) -> Piece:
    """The index-th piece of its kind: rounds of pp micro-batches, each through every chunk."""
    chunk = index // pp % vp
    micro_batch = index // (pp * vp) * pp + index % pp
    return Piece(kind=kind, micro_batch=micro_batch, chunk=chunk if kind == "F" else vp - 1 - chunk)


TECHNIQUE = Technique(
    name="interleaved",
    extension_point="training.schedule",
    rule=Schedule(numbers=rule, order=order, sizes=Sizes(least_vp=2, most_vp=MAX_CHUNKS, is_round=True)),
    gains="Idle for a vp-th of what 1F1B is.",
    costs="vp times the hand-overs, some more activations, and micro-batches in multiples of pp.",
    claims=("megatron-lm-2021", "korthikanti-2022"),
    settings=(("vp", 2),),
)
