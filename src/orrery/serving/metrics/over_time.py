"""Load and work of the machines over the run: the timeline, as means and rates.

A column that is an integral over time is divided by the bin's width, a sum likewise becomes a rate.
"""

from dataclasses import dataclass

import numpy as np

from orrery.serving.requests import Floats
from orrery.serving.simulation.result import TIMELINE, Simulated

POINTS = 200
"""The most points that the answer keeps of a timeline."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverTime:
    """One entry a bin, over all machines together."""

    start_s: Floats  # left edge of the bin
    width_s: Floats
    running_requests: Floats  # mean number in a batch
    waiting_requests: Floats  # mean number outside one
    kv_use_frac: Floats  # of the capacity of all machines
    busy_frac: Floats  # of the machines' time
    prompt_tokens_per_s: Floats
    output_tokens_per_s: Floats
    num_preemptions: Floats
    arrivals_rate_per_s: Floats
    finishes_rate_per_s: Floats
    step_s: Floats  # mean length of a step, nan without one
    power_w: Floats

    def coarser(self, points: int = POINTS) -> "OverTime":
        """The same in at most ``points`` bins, neighbours joined."""
        if self.start_s.size <= points:
            return self
        starts = np.linspace(0, self.start_s.size, points + 1).astype(np.int64)[:-1]
        width_s = np.add.reduceat(self.width_s, starts)
        steps = _per(self.busy_frac * self.width_s, self.step_s)
        joined_s = np.add.reduceat(self.busy_frac * self.width_s, starts)

        def mean(column: Floats) -> Floats:
            return _per(np.add.reduceat(column * self.width_s, starts), width_s)

        return OverTime(
            start_s=self.start_s[starts],
            width_s=width_s,
            running_requests=mean(self.running_requests),
            waiting_requests=mean(self.waiting_requests),
            kv_use_frac=mean(self.kv_use_frac),
            busy_frac=mean(self.busy_frac),
            prompt_tokens_per_s=mean(self.prompt_tokens_per_s),
            output_tokens_per_s=mean(self.output_tokens_per_s),
            num_preemptions=np.add.reduceat(self.num_preemptions, starts),
            arrivals_rate_per_s=mean(self.arrivals_rate_per_s),
            finishes_rate_per_s=mean(self.finishes_rate_per_s),
            step_s=_per(joined_s, np.add.reduceat(np.nan_to_num(steps), starts)),
            power_w=mean(self.power_w),
        )


def over_time(simulated: Simulated) -> OverTime:
    """The timeline of ``simulated`` in means and rates."""
    column = {name: simulated.timeline[:, index] for index, name in enumerate(TIMELINE)}
    width_s = np.diff(simulated.timeline_s)
    machines_s = width_s * max(simulated.num_machines, 1)
    busy_s = column["busy_s"]
    return OverTime(
        start_s=simulated.timeline_s[: width_s.size],
        width_s=width_s,
        running_requests=_per(column["running"], width_s),
        waiting_requests=_per(column["waiting"], width_s),
        kv_use_frac=_per(column["kv_bytes"], width_s * simulated.kv_capacity_bytes),
        busy_frac=_per(busy_s, machines_s),
        prompt_tokens_per_s=_per(column["prompt_tokens"], width_s),
        output_tokens_per_s=_per(column["decode_tokens"], width_s),
        num_preemptions=column["preemptions"],
        arrivals_rate_per_s=_per(column["arrivals"], width_s),
        finishes_rate_per_s=_per(column["finishes"], width_s),
        step_s=_per(busy_s, column["steps"], np.nan),
        power_w=_per(column["energy_j"], width_s),
    )


def mean(values: Floats, width_s: Floats) -> float:
    """Mean of ``values`` over time, 0 where there is no time."""
    total_s = float(width_s.sum())
    return float(values @ width_s) / total_s if total_s > 0 else 0.0


def _per(above: Floats, below: Floats, otherwise: float = 0.0) -> Floats:
    """Quotient, ``otherwise`` where there is nothing to divide by."""
    usable = np.isfinite(below) & (below > 0)
    return np.divide(above, below, out=np.full(above.shape, otherwise), where=usable)
