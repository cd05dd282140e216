"""How long a coded run takes: workers' times, and a master that gives up on whoever is late.

A worker takes ``fixed_s + load per_load_s`` and ``slow_ratio`` times as much while it straggles, with some scatter. The
master waits (1 + mu) times as long as the fastest worker took; who is later counts as a straggler. Where the scheme
would not tolerate them, the master waits on, worker by worker, until it does. [krishnan-2023]
"""

from dataclasses import dataclass

import numpy as np

from orrery.engine.streams import stream
from orrery.training.coding.gradient_code import Bools, Floats
from orrery.training.coding.scheme import Scheme


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPace:
    """Time of one worker for a round."""

    fixed_s: float  # invocation and answer, whatever the load
    per_load_s: float  # for the whole data of one job
    slow_ratio: float  # how many times longer while it straggles
    scatter_ratio: float = 1.05  # one standard deviation of the logarithm: times or by this much


def worker_times_s(pace: WorkerPace, load_frac: float, slow: Bools, seed: int = 0) -> Floats:
    """Seconds (rounds, workers) for a load. Schemes that are compared see the same scatter and the same stragglers."""
    scatter = np.exp(np.log(pace.scatter_ratio) * stream(seed, "coding/scatter").standard_normal(slow.shape))
    return (pace.fixed_s + load_frac * pace.per_load_s) * scatter * np.where(slow, pace.slow_ratio, 1.0)


def run_s(scheme: Scheme, times_s: Floats, wait_frac: float) -> tuple[Floats, Bools]:
    """Seconds of every round, and who was given up on, (rounds, workers); ``wait_frac`` is mu.

    ``times_s`` has as many rounds as there are jobs, and the scheme's delay on top.
    """
    late = np.zeros(times_s.shape, dtype=np.bool_)
    rounds_s = np.empty(len(times_s))
    for r, times in enumerate(times_s):
        deadline = (1.0 + wait_frac) * times.min()
        rounds_s[r] = _round_s(scheme, late[: r + 1], times, min(deadline, times.max()))
    return rounds_s, late


def _round_s(scheme: Scheme, late: Bools, times: Floats, deadline: float) -> float:
    """The first moment from ``deadline`` on when the scheme tolerates who is missing; notes them in ``late``."""
    moments = np.concatenate(([deadline], np.sort(times[times > deadline])))
    low, high = 0, len(moments) - 1
    while low < high:  # whoever tolerates some stragglers tolerates fewer
        middle = (low + high) // 2
        late[-1] = times > moments[middle]
        low, high = (low, middle) if scheme.tolerates(late) else (middle + 1, high)
    late[-1] = times > moments[low]
    return float(moments[low])
