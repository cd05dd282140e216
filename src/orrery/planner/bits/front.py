"""The Pareto front of perturbation against latency: solved at latencies between the fastest and the most exact."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from orrery.execution.memory import Infeasible
from orrery.planner.bits.options import Options
from orrery.planner.bits.solve import Assignment, solve
from orrery.planner.pareto import least

NUM_POINTS = 15


def front(options: Options, limits: Mapping[str, float], num_points: int = NUM_POINTS) -> tuple[Assignment, ...]:
    """Assignments that nothing beats in both, fastest first; limits on size and energy hold for all of them."""
    others = {metric: limit for metric, limit in limits.items() if metric != "latency"}
    exact, fast = solve(options, others), solve(_timed(options), others)
    if isinstance(exact, Infeasible) or isinstance(fast, Infeasible):
        return ()
    low, high = replace(fast, options=options).total("latency"), exact.total("latency")
    found = [solve(options, {**others, "latency": float(x)}) for x in np.linspace(low, high, num_points)]
    reached = [a for a in (*found, exact) if isinstance(a, Assignment)]
    retained = least(np.array([(a.total("latency"), a.perturbation_ratio) for a in reached], dtype=np.float64))
    return tuple(reached[int(i)] for i in retained)


def _timed(options: Options) -> Options:
    """The same choice, where being slow is all that counts."""
    return replace(options, perturbation_ratio=options.latency_s)
