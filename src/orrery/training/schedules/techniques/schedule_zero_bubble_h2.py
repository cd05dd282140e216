"""ZB-H2: twice the forward passes before the first backward pass, so that no rank waits between its first and last."""

import numpy as np

from orrery.base.technique import Technique
from orrery.training.schedules.schedule import Count, Piece, Pipeline, Schedule, Sizes, as_floats, in_turn


def rule(pp: Count, vp: Count, num_micro_batches: Count) -> Pipeline:
    """Idle (pp - 1)(F + B - 2 W), 2 pp - 1 micro-batches in flight. [zero-bubble-2024]

    That is idle time within a rank's own step. Ranks start one after the other, so a step that all ranks end together
    takes no less than (pp - 1) F over its work.
    """
    p, _, m = as_floats(pp, vp, num_micro_batches)
    ones = np.ones_like(p)
    return Pipeline(
        forward_idle_ratio=p - 1.0,
        backward_idle_ratio=p - 1.0,
        weight_idle_ratio=2.0 - 2.0 * p,
        fill_forward_ratio=p - 1.0,
        fill_backward_ratio=np.zeros_like(p),
        is_parallelogram=True,
        in_flight_ratio=np.minimum(m, 2.0 * p - 1.0),
        last_in_flight_ratio=np.minimum(m, 2.0 * p - 1.0),
        parameter_copies_ratio=ones,
        sends_ratio=ones,
    )


def order(pp: int, vp: int, num_micro_batches: int, rank: int) -> list[Piece]:
    """Twice as far ahead as 1F1B; weight gradients follow 2 ``rank`` backward passes later."""
    return in_turn(num_micro_batches, ahead=2 * (pp - 1 - rank), behind=2 * rank)


TECHNIQUE = Technique(
    name="zero-bubble-h2",
    extension_point="training.schedule",
    rule=Schedule(numbers=rule, order=order, sizes=Sizes(least_rounds=2, least_less=1)),
    gains="No idle time where F = B = W and the ranks need not meet at the optimizer.",
    costs="About twice the activations of 1F1B; the optimizer's norm is checked after the fact.",
    claims=("zero-bubble-2024",),
)
