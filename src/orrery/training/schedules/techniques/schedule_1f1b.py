"""1F1B: once the pipeline is full, every rank goes back with one micro-batch for each that goes forward."""

import numpy as np

from orrery.base.technique import Technique
from orrery.training.schedules.schedule import Count, Piece, Pipeline, Schedule, as_floats


def rule(pp: Count, vp: Count, num_micro_batches: Count) -> Pipeline:
    """Idle (pp - 1)(F + B + W); rank 0 holds min(m, pp) micro-batches. [pipedream-flush-2021], [megatron-lm-2021]"""
    p, _, m = as_floats(pp, vp, num_micro_batches)
    ones = np.ones_like(p)
    return Pipeline(
        forward_idle_ratio=p - 1.0,
        backward_idle_ratio=p - 1.0,
        weight_idle_ratio=p - 1.0,
        fill_forward_ratio=p - 1.0,
        fill_backward_ratio=np.zeros_like(p),
        is_parallelogram=False,
        in_flight_ratio=np.minimum(m, p),
        last_in_flight_ratio=ones,
        parameter_copies_ratio=ones,
        sends_ratio=ones,
    )


def order(pp: int, vp: int, num_micro_batches: int, rank: int) -> list[Piece]:
    """pp - 1 - rank forward passes, then forward and backward in turn, then the backward passes that are left."""
    ahead = min(pp - 1 - rank, num_micro_batches)
    pieces = [Piece(kind="F", micro_batch=i, chunk=0) for i in range(ahead)]
    for i in range(num_micro_batches):
        if i + ahead < num_micro_batches:
            pieces.append(Piece(kind="F", micro_batch=i + ahead, chunk=0))
        pieces.append(Piece(kind="BW", micro_batch=i, chunk=0))
    return pieces


TECHNIQUE = Technique(
    name="1f1b",
    extension_point="training.schedule",
    rule=Schedule(numbers=rule, order=order),
    gains="As idle as GPipe, but at most pp micro-batches wait, however many there are.",
    costs="The first rank holds pp times the activations of the last.",
    claims=("pipedream-flush-2021", "megatron-lm-2021"),
)
