"""Notes on where curves end, and where they cross an objective."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

from orrery.base.units import si
from orrery.web.sweep.curves import Curve, Swept
from orrery.web.sweep.inputs import SweepInputs
from orrery.web.sweep.metrics import METRICS, Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Neighbouring values of a line that have no answer, and why the first of them has none."""

    line: str
    first: str
    last: str
    count: int
    why: str


def gaps(found: Swept) -> Iterator[Gap]:
    """Every stretch without answers."""
    for curve in found.curves:
        for is_gap, stretch in groupby(curve.points, key=lambda point: bool(point.why)):
            points = list(stretch)
            if is_gap:
                yield Gap(
                    line=curve.name, first=points[0].value, last=points[-1].value, count=len(points), why=points[0].why
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class SloCrossing:
    """Where a line goes past an objective, or comes back within it."""

    line: str
    metric: str
    limit_s: float
    at: float | None  # None: all of the line is on one side
    is_met_below: bool  # of ``at``; without one, everywhere

    def describe(self, unit: str) -> str:
        """Format the crossing as text."""
        limit = si(self.limit_s, "s")
        if self.at is None:
            return f"{self.line}: {self.metric} is {'within' if self.is_met_below else 'beyond'} {limit} everywhere"
        side = "up to" if self.is_met_below else "from"
        return f"{self.line}: {self.metric} is within {limit} {side} about {si(self.at)} {unit}".rstrip()


def crossings(found: Swept, inputs: SweepInputs) -> Iterator[SloCrossing]:
    """Where each line's mean crosses each objective; between values it is taken to run straight."""
    if not inputs.vary.is_number:
        return
    for metric in METRICS:
        if metric.objective in found.limits_s:
            for curve in found.curves:
                yield from _of(curve, metric, found.limits_s[metric.objective])


def _of(curve: Curve, metric: Metric, limit_s: float) -> Iterator[SloCrossing]:
    known = [(float(s.value), s.figures[metric.key].value) for s in curve.points if metric.key in s.figures]
    if not known:
        return
    crossed = False
    for (x0, y0), (x1, y1) in pairwise(known):
        if (y0 <= limit_s) != (y1 <= limit_s):
            crossed = True
            share = (limit_s - y0) / (y1 - y0)
            at = x0 * (x1 / x0) ** share if x0 > 0 else x0 + share * (x1 - x0)
            yield SloCrossing(line=curve.name, metric=metric.name, limit_s=limit_s, at=at, is_met_below=y0 <= limit_s)
    if not crossed and math.isfinite(limit_s):
        is_met = known[0][1] <= limit_s
        yield SloCrossing(line=curve.name, metric=metric.name, limit_s=limit_s, at=None, is_met_below=is_met)
