"""A sweep as a table and as plain data."""

from collections.abc import Iterator
from typing import Any

from orrery.web.export import Cell
from orrery.web.sweep.curves import Swept
from orrery.web.sweep.inputs import SweepInputs
from orrery.web.sweep.metrics import METRICS

HEADER = (
    "setting",
    "value",
    "by",
    "line",
    "status",
    "why",
    "bound_by",
    "num_devices",
    *(column for m in METRICS for column in (m.key, f"{m.key}_low_80", f"{m.key}_high_80")),
)
"""One row a point; SI units."""


def rows(inputs: SweepInputs, found: Swept) -> Iterator[list[Cell]]:
    """Every point, line by line."""
    by = inputs.by.name if inputs.by else ""
    for line, curve in zip(inputs.lines, found.curves, strict=True):
        for point in curve.points:
            status = "infeasible" if point.why else "done"
            value = float(point.value) if inputs.vary.is_number else point.value
            row: list[Cell] = [inputs.vary.name, value, by, line, status, point.why, point.bound_by, point.num_devices]
            for metric in METRICS:
                figure = point.figures.get(metric.key)
                row += [figure.value, figure.low, figure.high] if figure else [None, None, None]
            yield row


def to_json(inputs: SweepInputs, found: Swept) -> dict[str, Any]:
    """The query and every point."""
    return {
        "settings": inputs.settings,
        "vary": inputs.vary.name,
        "by": inputs.by.name if inputs.by else None,
        "limits_s": found.limits_s,
        "curves": found.curves,
    }
