"""Runs that lose stages, drawn loss by loss: what the formulas of recovery must come to on average."""

import numpy as np

from orrery.engine.streams import stream


def play_steps(
    faults,
    num_steps,
    step_s,
    *,
    interval_steps=0,
    setback_steps=0.0,
    num_runs=200,
    seed=0,
):
    """Steps of runs drawn loss by loss: back to the last save (``interval_steps``), or by ``setback_steps``."""
    q, draws = faults.step_failure_frac(step_s), stream(seed, "training/stages")
    done, steps = np.zeros(num_runs), np.zeros(num_runs)
    open_runs = np.arange(num_runs)
    while open_runs.size:
        good = draws.geometric(q, open_runs.size) - 1.0
        ends = done[open_runs] + good >= num_steps
        steps[open_runs] += np.where(ends, num_steps - done[open_runs], good + 1.0)
        reached = done[open_runs] + good
        back = np.floor(reached / interval_steps) * interval_steps if interval_steps else reached + 1.0 - setback_steps
        done[open_runs] = back
        open_runs = open_runs[~ends]
    return steps
