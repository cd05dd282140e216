"""One device of many is slow and all wait for it: the slowest of n draws lags by s x sqrt(2 ln n).

s is the deviation of the devices' speeds; the formula is the leading term of a normal law's expected largest of n.
"""

from math import log, sqrt

from orrery.base.units import percent
from orrery.calibrate.compare.cause import Cause, between
from orrery.calibrate.compare.change import on_device, slowed
from orrery.calibrate.compare.run import Run, TrainingRun


def _lag(num_devices: int, severity: float) -> float:
    """How much longer the slowest of so many devices takes, as a share."""
    return severity * sqrt(2.0 * log(num_devices))


def change(run: Run, severity: float) -> Run | None:
    """All devices at the pace of the slowest."""
    if not isinstance(run, TrainingRun) or run.layout.num_devices == 1:
        return None
    frac = 1.0 / (1.0 + _lag(run.layout.num_devices, severity))
    return on_device(run, lambda d: slowed(d, compute_frac=frac, memory_frac=frac))


def describe(run: Run, severity: float) -> str:
    """The deviation, and the lag that it means."""
    n = run.layout.num_devices if isinstance(run, TrainingRun) else 1
    return f"devices that differ by {percent(severity, 1)}: the slowest of {n:,} lags by {percent(_lag(n, severity))}"


CAUSE = Cause(
    name="stragglers",
    title="slow devices among many, for which all others wait",
    ladder=between(0.01, 0.5),
    change=change,
    describe=describe,
    shows="More devices lose more, slowly; a run on one device is as predicted.",
    hides="A run on one device, and serving, cannot show it.",
    checks=(
        "step times by rank (torch.distributed timers, Megatron --log-straggler): one rank early at every barrier?",
        "nvidia-smi -q -d CLOCK,PERFORMANCE,ECC on every node; dcgmi diag -r 2",
        "the job again without the slowest node",
    ),
)
