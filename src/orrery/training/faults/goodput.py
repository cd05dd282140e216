"""Where the time of a run with failures goes, in closed form for exponential lives.

A stretch of work and its save take a seconds. With failures at rate r, a stop of D that cannot fail, and a recovery
of R (restart and load) that can, the mean time to get past it is

    E = (1/r + D) e^(r R) (e^(r a) - 1)

[daly-2006] has it with D = 0, [herault-robert-2015] as above. Of it, a is the stretch itself, (e^(ra) - 1)/r - a is
work that was lost, and the rest is recovery. A save that counts only after a lag L makes a failure fall back L farther:
L joins what is done again after a failure, to first order in L over the interval.
"""

import math
from dataclasses import dataclass, replace

from orrery.base.errors import OutOfRange
from orrery.training.faults.model import CheckpointPlan, FaultModel, RunPlan, check_fracs

MAX_FAILURES = 300.0
"""In one stretch: e^300 tries are out of any age, and near the end of what floats hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goodput:
    """Shares of a run's time, which add up to one, and the mean time itself."""

    time_s: float
    useful_frac: float  # steps that stay
    checkpoint_frac: float  # standing still for saves
    lost_frac: float  # work and saves done again
    recovery_frac: float  # detection, diagnosis, waiting for a node, restart and load
    num_failures: float  # in the mean

    @property
    def overhead_frac(self) -> float:
        """All that is not useful."""
        return 1.0 - self.useful_frac


def expected(faults: FaultModel, saves: CheckpointPlan, run: RunPlan) -> Goodput:
    """The mean run. A save also ends the last, shorter, stretch of work."""
    whole = math.floor(run.work_s / saves.interval_s * (1.0 + 1e-12))
    rest_s = max(0.0, run.work_s - whole * saves.interval_s)
    num_rest = 1 if rest_s > 1e-9 * run.work_s else 0
    stretches = [(whole, saves.interval_s + saves.blocked_s), (num_rest, rest_s + saves.blocked_s)]
    lost_s = recovery_s = failures = 0.0
    for count, stretch_s in stretches:
        more = _overheads(faults, saves, stretch_s)
        lost_s, recovery_s, failures = (
            x + count * y for x, y in zip((lost_s, recovery_s, failures), more, strict=True)
        )
    saving_s = (whole + num_rest) * saves.blocked_s
    time_s = run.work_s + saving_s + lost_s + recovery_s
    return Goodput(
        time_s=time_s,
        useful_frac=run.work_s / time_s,
        checkpoint_frac=saving_s / time_s,
        lost_frac=lost_s / time_s,
        recovery_frac=recovery_s / time_s,
        num_failures=failures,
    )


def expected_two_level(
    faults: FaultModel, memory: CheckpointPlan, storage: CheckpointPlan, run: RunPlan, *, storage_only_frac: float
) -> Goodput:
    """The mean run that restores most failures from memory, and ``storage_only_frac`` of them from storage.

    Nested: between deep failures, work advances at the goodput that shallow ones leave, and deep ones see it as their
    work. That is exact in the limit of many shallow stretches within a deep one, as in [moody-2010].
    """
    check_fracs(storage_only_frac=storage_only_frac)
    shallow = expected(_thinned(faults, 1.0 - storage_only_frac), memory, run)
    stretch = shallow.time_s / run.work_s
    slow = RunPlan(step_s=run.step_s * stretch, num_steps=run.num_steps)
    deep = expected(
        _thinned(faults, storage_only_frac), replace(storage, interval_s=storage.interval_s * stretch), slow
    )
    return Goodput(
        time_s=deep.time_s,
        useful_frac=deep.useful_frac * shallow.useful_frac,
        checkpoint_frac=deep.checkpoint_frac + deep.useful_frac * shallow.checkpoint_frac,
        lost_frac=deep.lost_frac + deep.useful_frac * shallow.lost_frac,
        recovery_frac=deep.recovery_frac + deep.useful_frac * shallow.recovery_frac,
        num_failures=deep.num_failures + shallow.num_failures * deep.time_s / shallow.time_s,
    )


def _thinned(faults: FaultModel, kept_frac: float) -> FaultModel:
    """The same job when only so many of its failures count."""
    slower = 1.0 / kept_frac if kept_frac > 0.0 else math.inf
    return replace(
        faults,
        device_mtbf_s=faults.device_mtbf_s * slower,
        node_mtbf_s=faults.node_mtbf_s * slower,
        link_mtbf_s=faults.link_mtbf_s * slower,
        software_mtbf_s=faults.software_mtbf_s * slower,
    )


def _overheads(faults: FaultModel, saves: CheckpointPlan, stretch_s: float) -> tuple[float, float, float]:
    """Lost work, recovery, failures of one stretch: e^(ra) - 1 failures in it, each with a recovery that may fail."""
    rate, recover_s = faults.failures_per_s, faults.restart_s + saves.load_s
    if rate == 0.0:
        return 0.0, 0.0, 0.0
    again_s = recover_s + saves.lag_s * saves.interval_s / (saves.interval_s + saves.blocked_s)
    if (in_one := rate * (stretch_s + again_s)) > MAX_FAILURES:
        raise OutOfRange(
            f"goodput: {in_one:.3g} failures are expected between two saves, so hardly any comes to be; "
            "write a shorter interval or restart."
        )
    cut = math.expm1(rate * stretch_s)
    stops = cut * math.exp(rate * again_s)
    recovery_s = stops * faults.down_s + cut * math.expm1(rate * recover_s) / rate
    behind_s = cut * (math.expm1(rate * again_s) - math.expm1(rate * recover_s)) / rate
    return cut / rate - stretch_s + behind_s, recovery_s, stops
