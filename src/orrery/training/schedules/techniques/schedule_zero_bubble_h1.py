"""ZB-H1: backward passes to the inputs go ahead of weight gradients, which fill the end of the pipeline."""

import numpy as np

from orrery.base.technique import Technique
from orrery.training.schedules.schedule import Count, Piece, Pipeline, Schedule, Sizes, as_floats, in_turn


def rule(pp: Count, vp: Count, num_micro_batches: Count) -> Pipeline:
    """Idle (pp - 1)(F + B - W), as few activations as 1F1B: pp micro-batches. [zero-bubble-2024]

    Where W > B there is nothing left to fill at the end, and (pp - 1) F stays.
    """
    p, _, m = as_floats(pp, vp, num_micro_batches)
    ones = np.ones_like(p)
    return Pipeline(
        forward_idle_ratio=p - 1.0,
        backward_idle_ratio=p - 1.0,
        weight_idle_ratio=1.0 - p,
        fill_forward_ratio=p - 1.0,
        fill_backward_ratio=np.zeros_like(p),
        is_parallelogram=False,
        in_flight_ratio=np.minimum(m, p),
        last_in_flight_ratio=np.minimum(m, p),
        parameter_copies_ratio=ones,
        sends_ratio=ones,
    )


def order(pp: int, vp: int, num_micro_batches: int, rank: int) -> list[Piece]:
    """1F1B whose weight gradients follow ``rank`` backward passes later, so that all ranks hold as much."""
    return in_turn(num_micro_batches, ahead=pp - 1 - rank, behind=rank)


TECHNIQUE = Technique(
    name="zero-bubble-h1",
    extension_point="training.schedule",
    rule=Schedule(numbers=rule, order=order, sizes=Sizes(least_rounds=1)),
    gains="A third of 1F1B's idle time where F = B = W, in the same memory.",
    costs="All ranks hold pp micro-batches; gradients of weights need what the backward pass would free.",
    claims=("zero-bubble-2024",),
)
