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
    ((power_w, _),) = steps_draws(deployment, done, ((entries, time_s),))
    return power_w


def steps_draws(
    deployment: Deployment, done: Step, runs: Iterable[tuple[Sequence[int], float]]
) -> tuple[tuple[float, float], ...]:
    """For each of ``runs`` (entries of a step, and the time that they take together on the wall): the mean power of one
    device, and what they ask for between idle and the limit (above 1 the device lowers its clock)."""
    law = energy.step_law(deployment.cluster.device)
    matrix_s, memory_s = work_s(deployment, done.parts, done.time_s.size)
    found: list[tuple[float, float]] = []
    for entries, time_s in runs:
        step_totals = float(matrix_s[list(entries)].sum()), float(memory_s[list(entries)].sum()), time_s
        found.append((law.power_w(*step_totals), law.demand_frac(*step_totals)))
    return tuple(found)
