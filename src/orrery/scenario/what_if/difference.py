"""Difference of two sides, with the interval that is left when errors of both cancel."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import isclose, log, nan

from orrery.scenario.what_if.metrics import BY_NAME, METRICS, Metric
from orrery.scenario.what_if.side import Side, shared_frac
from orrery.serving.intervals import difference_interval

STILL_FRAC = 1e-4
"""A figure that moves by less has not moved."""

ROUNDED_FRAC = 1e-9
"""Sums of the same parts in another order differ by less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A figure with the technique over that without it, less one; the 80 % interval where both are unsure."""

    frac: float
    low_80: float | None = None
    high_80: float | None = None

    @property
    def is_sure(self) -> bool:
        """Whether the interval leaves out no difference at all."""
        return self.low_80 is not None and self.high_80 is not None and not self.low_80 <= 0.0 <= self.high_80

    def to_json(self) -> dict[str, float | None]:
        """By name."""
        return {"frac": self.frac, "low_80": self.low_80, "high_80": self.high_80}


def differences(without: Side, having: Side) -> dict[str, Difference]:
    """By metric, in the order of the table; only of figures that both sides have."""
    shared = shared_frac(without, having)
    return {
        m.name: _difference(m.name, without, having, shared)
        for m in METRICS
        if m.name in without.figures and m.name in having.figures and without.figures[m.name]
    }


def _difference(name: str, without: Side, having: Side, shared: float) -> Difference:
    a, b = without.figures[name], having.figures[name]
    if isclose(a, b, rel_tol=ROUNDED_FRAC):
        return Difference(frac=0.0, low_80=0.0, high_80=0.0)
    around_a, around_b = without.intervals.get(name), having.intervals.get(name)
    if around_a is None or around_b is None or b <= 0.0:
        return Difference(frac=b / a - 1.0)
    found = difference_interval(a, around_a, b, around_b, shared_frac=shared)
    return Difference(frac=b / a - 1.0, low_80=found.low_80 - 1.0, high_80=found.high_80 - 1.0)


def gain(metric: Metric, without: Mapping[str, float], having: Mapping[str, float]) -> float | None:
    """How much better a figure is with the technique: the logarithm of its ratio, above 0 where it helps."""
    a, b = without.get(metric.name), having.get(metric.name)
    if a is None or b is None or a <= 0.0 or b <= 0.0:
        return None
    return log(b / a) if metric.is_rate else log(a / b)


def is_same(without: Side, having: Side) -> bool:
    """Whether no figure of both moves; a sum in another order moves none."""
    return bool(without.figures) and all(
        isclose(having.figures.get(name, nan), value, rel_tol=ROUNDED_FRAC)
        for name, value in without.figures.items()
        if name in BY_NAME
    )
