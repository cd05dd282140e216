"""Intervals from the runs' own errors: those of runs that the constants never saw, wider where there are few.

Where n runs were off by e_i = log(measured / predicted), the next one is expected at mean(e) + t s sqrt(1 + 1/n), with
s their standard deviation and t Student's quantile for n - 1 degrees of freedom.
"""

from collections.abc import Mapping
from math import sqrt

import numpy as np

from orrery.calibrate.runs.problem import RATES, Floats, Runs
from orrery.evidence.metrics import base_metric

FEWEST = 3
"""With fewer runs the shipped interval stays."""

LEAST = {"low_80": 0.97, "high_80": 1.03, "low_95": 0.95, "high_95": 1.05}
"""No interval is narrower: runs repeat no better than that."""

ONE_MODEL = 1.5
"""Intervals from runs of one model are so much wider (log space): how well others are met was not measured; assumed."""

DEGREES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 20, 30, 60)
STUDENT_80 = (3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372, 1.356, 1.341, 1.325, 1.310, 1.296)
STUDENT_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.179, 2.131, 2.086, 2.042, 2.000)
NORMAL_80, NORMAL_95 = 1.2816, 1.9600
"""Two-sided quantiles of Student's distribution by degrees of freedom, and of the normal one beyond the last."""


def student(values: tuple[float, ...], limit: float, degrees: int) -> float:
    """A quantile between the tabulated degrees, in proportion to their reciprocals, where it is nearly straight."""
    inverse = [0.0, *(1.0 / d for d in reversed(DEGREES))]
    return float(np.interp(1.0 / degrees, inverse, [limit, *reversed(values)]))


def spread(errors: Floats, wider: float = 1.0) -> dict[str, float]:
    """Truth over prediction at four quantiles; 1 lies inside."""
    n = len(errors)
    middle, width = float(np.mean(errors)), wider * float(np.std(errors, ddof=1)) * sqrt(1.0 + 1.0 / n)
    out: dict[str, float] = {}
    for percent, values, limit in ((80, STUDENT_80, NORMAL_80), (95, STUDENT_95, NORMAL_95)):
        t = student(values, limit, n - 1)
        out[f"low_{percent}"] = float(np.exp(middle - t * width))
        out[f"high_{percent}"] = float(np.exp(middle + t * width))
    return {k: float(f"{(min if v < 1 else max)(out[k], v):.4g}") for k, v in LEAST.items()}


def spreads(runs: Runs, after: Floats) -> Mapping[str, dict[str, float]]:
    """By mode and metric, from log(predicted / measured) of runs left out; plain metrics and medians alone."""
    found: dict[str, list[float]] = {}
    for cell, error in zip(runs.cells, after, strict=True):
        if cell.metric in (base := base_metric(cell.metric), f"{base}_p50"):
            key = runs.spread_key(cell)
            is_flipped = cell.metric in RATES and "step_time" in key
            found.setdefault(key, []).append(float(error if is_flipped else -error))
    wider = ONE_MODEL if len(runs.subject.models) == 1 else 1.0
    return {key: spread(np.array(e), wider) for key, e in sorted(found.items()) if len(e) >= FEWEST}
