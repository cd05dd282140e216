"""How sure an answer is: the error of this kind of run on measured tables, wider where constants were borrowed."""

from orrery.base.cost import Spread
from orrery.base.errors import OutOfRange
from orrery.execution.explain import op_name
from orrery.execution.layout import Deployment
from orrery.execution.step import Step
from orrery.kernels import resolve

UNMEASURED = Spread(
    low_80_ratio=0.6, high_80_ratio=1.6, low_95_ratio=0.4, high_95_ratio=2.5,
    because="no measured runs of this kind; assumed",
)  # fmt: skip
BORROWED = 1.6
"""How much wider an interval becomes when all of the time was predicted with another device's constants."""
NOTED = 0.05
"""Below this share of borrowed time an answer counts as measured on its own device."""

_SAME_AS = {"requests_per_s": "output_tokens_per_s", "total_tokens_per_s": "output_tokens_per_s"}


def spread_of(deployment: Deployment, mode: str, metric: str, borrowed: float) -> Spread:
    """The spread of one metric in one mode, given the share of the time that rests on borrowed constants."""
    spreads = deployment.engine.spreads
    found = spreads.get(f"{mode}.{metric}") or spreads.get(f"{mode}.{_SAME_AS.get(metric, metric)}") or UNMEASURED
    if borrowed < NOTED:
        return found
    because = f"{found.because}; {borrowed:.0%} of the time rests on constants of related devices"
    return found.widened(1.0 + borrowed * (BORROWED - 1.0), because)


def borrowed_share(deployment: Deployment, done: Step) -> float:
    """Share of kernel time whose constants were not measured on this device."""
    borrowed = total = 0.0
    for (op, format), time_s in _kernel_times(done).items():
        total += time_s
        if _origin(deployment, op, format) != "device":
            borrowed += time_s
    return borrowed / total if total else 0.0


def notes_of(deployment: Deployment, borrowed: float) -> tuple[str, ...]:
    """Sentences that a reader must see beside the numbers."""
    if borrowed < NOTED:
        return ()
    device = deployment.cluster.device
    return (
        f"{borrowed:.0%} of the time rests on constants measured on other devices than {device.name} "
        f"({device.generation}); the intervals are wider for it.",
    )


def _kernel_times(done: Step) -> dict[tuple[str, str], float]:
    """Seconds by rule and format, over all entries; collectives and gaps have no format."""
    times: dict[tuple[str, str], float] = {}
    for p in done.parts:
        if p.format:
            key = (op_name(p.op), p.format)
            times[key] = times.get(key, 0.0) + float(p.time_s.sum())
    return times


def _origin(deployment: Deployment, op: str, format: str) -> str:
    try:
        return resolve.find(deployment.cluster.device, op, format, deployment.engine.kernels).origin
    except OutOfRange:
        return ""
