"""Channels of a step's parts: seconds, their bound, and the work that draws power."""

from collections.abc import Sequence

import numpy as np

from orrery.execution.batch import Part
from orrery.execution.layout import Deployment
from orrery.execution.power import work_s
from orrery.execution.surface._kernel import CHANNELS, MATRIX_WORK, MEMORY, MEMORY_WORK, NETWORK, TIME, Floats


def channels(deployment: Deployment, parts: Sequence[Part], size: int) -> Floats:
    """The parts' channels, summed: (entries of the batch, channel). What is no kernel does no work."""
    out = np.zeros((size, CHANNELS))
    for p in parts:
        out[:, TIME] += p.time_s
        if p.group == "network":
            out[:, NETWORK] += p.time_s
        if p.once is not None:
            out[:, MEMORY] += np.where(p.once.memory_s > p.once.compute_s, p.time_s, 0.0)
    out[:, MATRIX_WORK], out[:, MEMORY_WORK] = work_s(deployment, parts, size)
    return out
