"""The cheapest schedule of replicas that knows the future, which autoscalers are held against.

The demand says how many replicas are needed in each period. A replica must have been started a cold start before a
period that needs it, and is paid for from then on. Demands are nested (the third replica is needed only where the
second one is), so each level is scheduled by itself: between two periods that need it, keeping it costs the gap, and
giving it back and starting it again costs a cold start, so it is kept where the gap is shorter. That is the optimum.
"""

from dataclasses import dataclass

import numpy as np

from orrery.serving.requests import Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hindsight:
    """A schedule: replica-seconds by level, and replicas that run (or start) at each period."""

    paid_s: Floats  # by level: of the first replica, the second, …
    running: Ints  # by period
    starts: int

    @property
    def total_s(self) -> float:
        """Replica-seconds of all levels."""
        return float(self.paid_s.sum())


def cheapest(demand: Ints, period_s: float, cold_start_s: float, least: int = 0) -> Hindsight:
    """The schedule of least replica-seconds that has ``demand`` replicas ready in every period, and ``least`` always.

    Replicas that the first periods need are there at the start: their cold start is not counted.
    """
    periods, lead = demand.size, int(np.ceil(cold_start_s / period_s - 1e-9))
    levels = max(int(demand.max(initial=0)), least)
    paid_s, running, starts = np.zeros(levels), np.zeros(periods, dtype=np.int64), 0
    for level in range(levels):
        if level < least:
            paid_s[level] = periods * period_s
            running += 1
            continue
        runs = _spells(demand > level, period_s, cold_start_s)
        for first, last in runs:
            begun_s = first * period_s
            start_s = cold_start_s if begun_s >= cold_start_s else begun_s
            paid_s[level] += (last - first) * period_s + start_s
            running[max(0, first - lead) : last] += 1
            starts += 1
    return Hindsight(paid_s=paid_s, running=running, starts=starts)


def _spells(needed: np.ndarray, period_s: float, cold_start_s: float) -> list[tuple[int, int]]:
    """First period and end of each time that a replica runs: gaps shorter than a cold start are bridged."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], needed.astype(np.int64), [0]))))
    found: list[tuple[int, int]] = []
    for first, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if found and (first - found[-1][1]) * period_s <= cold_start_s:
            found[-1] = (found[-1][0], end)
        else:
            found.append((first, end))
    return found


def demand_of(arrive_s: Floats, capacity_requests_per_s: float, period_s: float, end_s: float, most: int) -> Ints:
    """Replicas that each period needs: its arrivals over what a replica carries, at most as many as there may be."""
    periods = max(1, int(np.ceil(end_s / period_s - 1e-9)))
    counts = np.bincount(np.minimum((arrive_s / period_s).astype(np.int64), periods - 1), minlength=periods)
    found = np.ceil(counts / (capacity_requests_per_s * period_s) - 1e-9).astype(np.int64)
    return np.minimum(found, most)
