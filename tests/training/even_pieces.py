"""Ranks that take as long for every piece."""

import numpy as np

from orrery.training.schedules.schedule import Schedule
from orrery.training.schedules.timeline import PieceSeconds


def even_seconds(
    schedule: Schedule,
    pp: int,
    vp: int,
    forward_s: float,
    backward_s: float,
    weight_s: float,
    hand_over_s: float = 0.0,
) -> PieceSeconds:
    """Ranks that take F, B and W for a micro-batch, shared out evenly over the chunks that it visits."""
    shape = (pp, schedule.num_chunks(vp))
    return PieceSeconds(
        forward_s=np.full(shape, forward_s / vp),
        backward_s=np.full(shape, backward_s / vp),
        weight_s=np.full(shape, weight_s / vp),
        hand_over_s=hand_over_s,
    )
