"""How often to save: a rule of thumb, and the interval that is best exactly.

    Young     sqrt(2 C M)                                                   [young-1974]
    exact     the t with (rt - 1) e^(rt - 1) = -e^(-1 - rC), so rt = 1 + W(-e^(-1 - rC))

C is what one save stops, M = 1/r the mean time between failures of the job. The exact one makes the mean time for a
unit of work least, (e^(r(t + C)) - 1) / t; what a recovery costs does not move it.
"""

import math
from dataclasses import replace

from orrery.training.faults.goodput import expected
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan, check_positive


def young_s(blocked_s: float, mtbf_s: float) -> float:
    """Work between saves, to first order."""
    return math.sqrt(2.0 * blocked_s * mtbf_s)


def best_s(blocked_s: float, mtbf_s: float) -> float:
    """Work between saves that makes the mean time least: Newton's steps from Young's rule on 1 - x - e^(-x - rC) = 0.

    With x = r t: convex and falling to the right of the root, so the steps close in from one side.
    """
    if blocked_s <= 0.0:
        return 0.0
    target = math.exp(-blocked_s / mtbf_s)
    x = young_s(blocked_s, mtbf_s) / mtbf_s
    for _ in range(64):
        gap, slope = 1.0 - x - target * math.exp(-x), -1.0 + target * math.exp(-x)
        step = gap / slope
        x -= step
        if abs(step) <= 1e-14 * x:
            break
    return x * mtbf_s


def best_steps(faults: FaultModel, saves: CheckpointPlan, run: RunPlan) -> int:
    """Whole steps between saves with the least mean time; the plan's own interval does not matter."""
    check_positive(saves, "blocked_s")
    if faults.failures_per_s == 0.0:
        return run.num_steps
    ideal = best_s(saves.blocked_s, 1.0 / faults.failures_per_s) / run.step_s
    near = {min(run.num_steps, max(1, n)) for n in (math.floor(ideal), math.ceil(ideal))}
    return min(near, key=lambda n: expected(faults, replace(saves, interval_s=n * run.step_s), run).time_s)
