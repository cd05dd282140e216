"""GPipe: all micro-batches go forward, then all go back."""

import numpy as np

from orrery.base.technique import Technique
from orrery.training.schedules.schedule import Count, Piece, Pipeline, Schedule, as_floats


def rule(pp: Count, vp: Count, num_micro_batches: Count) -> Pipeline:
    """Idle (pp - 1)(F + B + W); all m micro-batches in flight. [gpipe-2019]"""
    p, _, m = as_floats(pp, vp, num_micro_batches)
    ones = np.ones_like(p)
    return Pipeline(
        forward_idle_ratio=p - 1.0,
        backward_idle_ratio=p - 1.0,
        weight_idle_ratio=p - 1.0,
        fill_forward_ratio=p - 1.0,
        fill_backward_ratio=np.zeros_like(p),
        is_parallelogram=False,
        in_flight_ratio=m,
        last_in_flight_ratio=m,
        parameter_copies_ratio=ones,
        sends_ratio=ones,
    )


def order(pp: int, vp: int, num_micro_batches: int, rank: int) -> list[Piece]:
    """Every rank alike: forward in order, backward last first."""
    forward = [Piece(kind="F", micro_batch=i, chunk=0) for i in range(num_micro_batches)]
    return forward + [Piece(kind="BW", micro_batch=i, chunk=0) for i in reversed(range(num_micro_batches))]


TECHNIQUE = Technique(
    name="gpipe",
    extension_point="training.schedule",
    rule=Schedule(numbers=rule, order=order),
    gains="The simplest order: a model over pp ranks, idle for (pp - 1)/m of its work.",
    costs="Activations of every micro-batch wait for the last forward pass.",
    claims=("gpipe-2019",),
)
