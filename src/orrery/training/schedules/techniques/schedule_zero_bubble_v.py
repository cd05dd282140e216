"""ZB-V: two chunks a rank, the second the other way round: backward passes start where forward passes end."""

from collections.abc import Iterator

import numpy as np

from orrery.base.technique import Technique
from orrery.training.schedules.schedule import (
    B0,
    B1,
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
    """No idle time within a rank's own step where F = B = W; pp micro-batches in flight. [zero-bubble-2024]

    Played out, the order below idles for (pp - 1)(B - W), and for (pp - 1) B/2 where all ranks end together. Exact for
    B >= F and B >= W; no less otherwise.
    """
    p, v, m = as_floats(pp, vp, num_micro_batches)
    return Pipeline(
        forward_idle_ratio=np.zeros_like(p),
        backward_idle_ratio=p - 1.0,
        weight_idle_ratio=1.0 - p,
        fill_forward_ratio=(p - 1.0) / 2.0,
        fill_backward_ratio=(p - 1.0) / 2.0,
        is_parallelogram=True,
        in_flight_ratio=np.minimum(m, p),
        last_in_flight_ratio=np.minimum(m, p),
        parameter_copies_ratio=np.ones_like(p),
        sends_ratio=v,
    )


def order(pp: int, vp: int, num_micro_batches: int, rank: int) -> list[Piece]:
    """The pieces of a rank."""
    return numbered(_letters(pp, num_micro_batches, rank))


def _letters(pp: int, num_micro_batches: int, rank: int) -> Iterator[PassSlot]:
    """Fill chunk 0, then both chunks, go back in chunk 1; six pieces in turn; drain, with weight gradients last."""
    left = pp - rank
    full = (F0, B0, W0, F1, B1, W1)
    yield from (F0,) * (2 * left - 1)
    yield from (F1, F0) * rank
    yield from full[3:] * left
    yield from full * (num_micro_batches - pp - left + 1)
    yield from full[1:] * (left - 1)
    yield from (B0, B1) * rank
    yield from (B0, W0) * left
    yield from (W1,) * rank
    yield from (W0,) * rank


TECHNIQUE = Technique(
    name="zero-bubble-v",
    extension_point="training.schedule",
    rule=Schedule(
        numbers=rule,
        order=order,
        placement="v",
        sizes=Sizes(least_vp=2, most_vp=2, least_rounds=2, least_less=1),
    ),
    gains="No idle time where F = B = W and the ranks need not meet at the optimizer, in the memory of 1F1B.",
    costs="Twice the hand-overs; idle time where F, B and W differ.",
    claims=("zero-bubble-2024",),
    settings=(("vp", 2),),
)
