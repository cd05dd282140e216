"""Many seeded runs with failures, drawn one failure at a time for all runs at once.

The clock of the next failure starts anew when the restart begins (a renewal), so lives need not be exponential: a
Weibull shape below 1 makes failures come in bursts, as field data shows [schroeder-gibson-2010]. What a failure finds
saved is counted to the second: a save that is not yet through (its lag) does not count.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.engine.streams import stream
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan

Floats = NDArray[np.float64]
MAX_FAILURES = 1_000_000
"""Most failures of one run: a run that has more is taken never to end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """One entry for each simulated run."""

    time_s: Floats
    recovery_s: Floats
    num_failures: Floats
    work_s: float
    saving_s: float  # of the saves that stay, in each run

    @property
    def lost_s(self) -> Floats:
        """Work and saves that were done again."""
        return self.time_s - self.recovery_s - self.work_s - self.saving_s

    @property
    def useful_frac(self) -> float:
        """Share of the mean time that is useful work."""
        return self.work_s / float(self.time_s.mean())

    def percentile_s(self, percent: float) -> float:
        """Time to train that so many percent of the runs stay within."""
        return float(np.percentile(self.time_s, percent))


def simulate(
    faults: FaultModel,
    saves: CheckpointPlan,
    run: RunPlan,
    *,
    num_runs: int = 1000,
    seed: int = 0,
    weibull_shape: float = 1.0,
) -> Runs:
    """``num_runs`` runs; ``weibull_shape`` 1 is exponential, and any shape keeps the mean time between failures."""
    if weibull_shape <= 0.0:
        raise ScenarioError(f"weibull_shape: got {weibull_shape:g}; write a number above 0.")
    world = _World(faults, saves, run, weibull_shape, stream(seed, "training/failures"))
    time_s, recovery_s, failures = world.play(num_runs)
    num_saves = math.ceil(run.work_s / saves.interval_s * (1.0 - 1e-12))
    return Runs(
        time_s=time_s,
        recovery_s=recovery_s,
        num_failures=failures,
        work_s=run.work_s,
        saving_s=num_saves * saves.blocked_s,
    )


class _World:
    """One job's constants, and the draws of its failures."""

    def __init__(
        self, faults: FaultModel, saves: CheckpointPlan, run: RunPlan, shape: float, draws: np.random.Generator
    ) -> None:
        self.rate, self.down_s = faults.failures_per_s, faults.down_s
        self.recover_s = faults.restart_s + saves.load_s
        self.interval_s, self.blocked_s, self.lag_s = saves.interval_s, saves.blocked_s, saves.lag_s
        self.work_s, self.shape, self.draws = run.work_s, shape, draws

    def play(self, num_runs: int) -> tuple[Floats, Floats, Floats]:
        """Time, recovery and failures of each run: every turn takes all unfinished runs to their next failure."""
        time_s, recovery_s, failures = np.zeros(num_runs), np.zeros(num_runs), np.zeros(num_runs)
        saved_s, open_runs = np.zeros(num_runs), np.arange(num_runs)
        for turn in range(MAX_FAILURES):
            recover_s = self.recover_s if turn else 0.0
            left_s = self.work_s - saved_s[open_runs]
            need_s = recover_s + left_s + np.ceil(left_s / self.interval_s * (1.0 - 1e-12)) * self.blocked_s
            fails_s = self._next_failure_s(open_runs.size)
            ends = need_s <= fails_s
            spent_s = np.where(ends, need_s, fails_s + self.down_s)
            time_s[open_runs] += spent_s
            recovery_s[open_runs] += np.where(ends, recover_s, np.minimum(fails_s, recover_s) + self.down_s)
            failures[open_runs] += ~ends
            saved_s[open_runs] += np.minimum(left_s, self._saves_by(fails_s - recover_s) * self.interval_s)
            open_runs = open_runs[~ends]
            if open_runs.size == 0:
                return time_s, recovery_s, failures
        raise ScenarioError(f"simulate: a run had {MAX_FAILURES} failures; write a longer MTBF or save more often.")

    def _saves_by(self, since_restart_s: Floats) -> Floats:
        """Saves of this stretch that count at that moment."""
        through_s = np.maximum(0.0, since_restart_s - self.lag_s)
        return np.floor(through_s / (self.interval_s + self.blocked_s))

    def _next_failure_s(self, count: int) -> Floats:
        if self.rate == 0.0:
            return np.full(count, math.inf)
        scale_s = 1.0 / self.rate / math.gamma(1.0 + 1.0 / self.shape)
        return scale_s * self.draws.weibull(self.shape, count)
