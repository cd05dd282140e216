"""The power that a device draws over a step: the work of its kernels, and the time that the step takes on the wall.

Kernels add up their work; collectives, gaps and the host's part add time alone. A device of a pipeline does its own
stage's share of the work in its own stage's share of the time, so a full pipeline draws what one device would.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from orrery.execution.batch import Floats, Part
from orrery.execution.layout import Deployment
from orrery.execution.step import Step
from orrery.kernels import energy


def work_s(deployment: Deployment, parts: Iterable[Part], size: int) -> tuple[Floats, Floats]:
    """(matrix_s, memory_s) of every entry of a step, as the law of power takes them."""
    device = deployment.cluster.device
    matrix_s, memory_s = np.zeros(size), np.zeros(size)
    for p in parts:
        if p.once is not None:
            flops, moved = (p.count * np.asarray(x, np.float64) for x in (p.once.flops, p.once.bytes))
            more_matrix_s, more_memory_s = energy.weighted_s(device, p.format, flops, moved)
            matrix_s += more_matrix_s
            memory_s += more_memory_s
    return matrix_s, memory_s


def steps_power_w(deployment: Deployment, done: Step, entries: Sequence[int], time_s: float) -> float:
    """Mean power of one device over the steps ``entries``, which together take ``time_s`` on the wall."""
    return energy.step_law(deployment.cluster.device).power_w(*_together_s(deployment, done, entries), time_s)


def steps_demand_frac(deployment: Deployment, done: Step, entries: Sequence[int], time_s: float) -> float:
    """What the steps ask for between idle and the limit; above 1 the device lowers its clock."""
    return energy.step_law(deployment.cluster.device).demand_frac(*_together_s(deployment, done, entries), time_s)


def _together_s(deployment: Deployment, done: Step, entries: Sequence[int]) -> tuple[float, float]:
    matrix_s, memory_s = work_s(deployment, done.parts, done.time_s.size)
    return float(matrix_s[list(entries)].sum()), float(memory_s[list(entries)].sum())
