"""How sure an answer is: the error of this kind of run on measured tables, wider where constants were borrowed."""

from dataclasses import dataclass

from orrery.base.cost import Spread
from orrery.execution.layout import Deployment
from orrery.execution.step import Step

UNMEASURED = Spread(
    low_80_ratio=0.6, high_80_ratio=1.6, low_95_ratio=0.4, high_95_ratio=2.5,
    because="no measured runs of this kind; assumed",
)  # fmt: skip
BORROWED = 1.6
"""How much wider an interval becomes when all of the time was predicted with another device's constants."""
EXTRAPOLATED = 1.5
"""The same when all of the time was predicted for sizes outside the measured range."""
NOTED = 0.05
"""Below this share of the time neither is worth a word."""
SHOWN = 3
"""So many examples make the point."""

_SAME_AS = {"requests_per_s": "output_tokens_per_s", "total_tokens_per_s": "output_tokens_per_s"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """Shares of the kernels' time that rest on other devices' constants, and on sizes that nobody measured."""

    borrowed_frac: float
    outside_frac: float
    examples: tuple[str, ...]  # which sizes


def doubt_of(done: Step) -> Doubt:
    """What the answer rests on, over all steps that it was made of."""
    borrowed = outside = total = 0.0
    examples: list[str] = []
    for p in done.parts:
        if p.calibration is None:
            continue
        time_s = float(p.time_s.sum())
        total += time_s
        if p.calibration.origin != "device":
            borrowed += time_s
        if beyond := p.outside():
            outside += time_s
            examples.append(f"{p.name} ({beyond})")
    scale = total or 1.0
    return Doubt(borrowed_frac=borrowed / scale, outside_frac=outside / scale, examples=tuple(dict.fromkeys(examples)))


def spread_of(deployment: Deployment, mode: str, metric: str, doubt: Doubt) -> Spread:
    """The spread of one metric in one mode, wider by what the answer borrows and extrapolates."""
    spreads = deployment.engine.spreads
    found = spreads.get(f"{mode}.{metric}") or spreads.get(f"{mode}.{_SAME_AS.get(metric, metric)}") or UNMEASURED
    factor, because = 1.0, found.because
    if doubt.borrowed_frac >= NOTED:
        factor *= 1.0 + doubt.borrowed_frac * (BORROWED - 1.0)
        because += f"; {doubt.borrowed_frac:.0%} of the time rests on constants of related devices"
    if doubt.outside_frac >= NOTED:
        factor *= 1.0 + doubt.outside_frac * (EXTRAPOLATED - 1.0)
        because += f"; {doubt.outside_frac:.0%} of the time is outside the measured sizes"
    found = found if factor == 1.0 else found.widened(factor, because)
    unrest = deployment.cluster.device.unrest_ratio
    return found if unrest == 1.0 else found.moved_out(unrest, f"{because}; {_unrest(deployment)}")


def _unrest(deployment: Deployment) -> str:
    device = deployment.cluster.device
    return (
        f"{device.name} was restless while it was measured: intervals lie {device.unrest_ratio:.2f} times further out"
    )


def notes_of(deployment: Deployment, doubt: Doubt) -> tuple[str, ...]:
    """Sentences that a reader must see beside the numbers."""
    device = deployment.cluster.device
    notes = [_unrest(deployment) + "."] if device.unrest_ratio > 1.0 else []
    if doubt.borrowed_frac >= NOTED:
        notes.append(
            f"{doubt.borrowed_frac:.0%} of the time rests on constants measured on other devices than {device.name} "
            f"({device.generation}); the intervals are wider for it."
        )
    if doubt.outside_frac >= NOTED:
        notes.append(
            f"{doubt.outside_frac:.0%} of the time is outside the sizes that were measured: "
            f"{'; '.join(doubt.examples[:SHOWN])}; the intervals are wider for it."
        )
    return tuple(notes)
