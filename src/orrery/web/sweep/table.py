"""A sweep as a table and as plain data."""

from collections.abc import Iterator
from typing import Any

from orrery.web.export import Cell
from orrery.web.sweep.asked import Asked
from orrery.web.sweep.curves import Swept
from orrery.web.sweep.metrics import METRICS

HEADER = (
    "setting", "value", "by", "line", "status", "why", "bound_by", "num_devices",
    *(column for m in METRICS for column in (m.key, f"{m.key}_low_80", f"{m.key}_high_80")),
)  # fmt: skip
"""One row a point; SI units."""


def rows(asked: Asked, found: Swept) -> Iterator[list[Cell]]:
    """Every point, line by line."""
    by = asked.by.name if asked.by else ""
    for line, curve in zip(asked.lines, found.curves, strict=True):
        for spot in curve.spots:
            status = "no answer" if spot.why else "done"
            value = float(spot.value) if asked.vary.is_number else spot.value
            row: list[Cell] = [asked.vary.name, value, by, line, status, spot.why, spot.bound_by, spot.num_devices]
            for metric in METRICS:
                figure = spot.figures.get(metric.key)
                row += [figure.value, figure.low, figure.high] if figure else [None, None, None]
            yield row


def told(asked: Asked, found: Swept) -> dict[str, Any]:
    """What was asked and every point."""
    return {
        "settings": asked.settings, "vary": asked.vary.name, "by": asked.by.name if asked.by else None,
        "limits_s": found.limits_s, "curves": found.curves,
    }  # fmt: skip
