"""Charts of a sweep: curves with their 80 % bands, or rows where values have no order."""

from collections.abc import Iterator

from orrery.drawing import Axis, Reading, Series, intervals, lines
from orrery.web.sweep.curves import Curve, Swept
from orrery.web.sweep.inputs import SweepInputs
from orrery.web.sweep.metrics import Metric

WIDE_RATIO = 30.0
"""Between the largest and the smallest value, beyond which they are drawn in powers of ten."""


def chart(found: Swept, inputs: SweepInputs, metric: Metric) -> str:
    """One metric over the swept setting, marked where the slider stands."""
    axis = Axis(metric.name, metric.unit, is_log=_spans(found, metric) > WIDE_RATIO)
    says = f"80 % intervals; over {inputs.vary.label.lower()}"
    if not inputs.vary.is_number:
        return intervals(list(_readings(found, inputs, metric)), axis, title=metric.name, says=says)
    is_log = inputs.controls.get("scale") == "log" or ("values" in inputs.controls and inputs.vary.is_log)
    along = Axis(inputs.vary.label, inputs.vary.unit, is_log=is_log)
    series = [_series(curve, metric) for curve in found.curves]
    limit_s = found.limits_s.get(metric.objective)
    if limit_s is not None and any(s.x for s in series):
        xs = [x for s in series for x in s.x]
        series.append(Series("objective", (min(xs), max(xs)), (limit_s, limit_s), is_dashed=True))
    value = inputs.values[inputs.at]
    return lines(series, along, axis, title=metric.name, says=says, mark=(float(value), inputs.vary.describe(value)))


def _spans(found: Swept, metric: Metric) -> float:
    values = [s.figures[metric.key].value for c in found.curves for s in c.points if metric.key in s.figures]
    return max(values) / min(values) if values and min(values) > 0 else 1.0


def _series(curve: Curve, metric: Metric) -> Series:
    """Points of a line up to its last answer; without an interval there is no band."""
    known = [(float(s.value), s.figures[metric.key]) for s in curve.points if metric.key in s.figures]
    has_band = bool(known) and all(f.low is not None and f.high is not None for _, f in known)
    return Series(
        curve.name,
        [x for x, _ in known],
        [f.value for _, f in known],
        [f.low or 0.0 for _, f in known] if has_band else (),
        [f.high or 0.0 for _, f in known] if has_band else (),
    )


def _readings(found: Swept, inputs: SweepInputs, metric: Metric) -> Iterator[Reading]:
    for curve in found.curves:
        for point in curve.points:
            if (figure := point.figures.get(metric.key)) is not None:
                name = point.value if inputs.by is None else f"{point.value}, {curve.name}"
                low = figure.value if figure.low is None else figure.low
                yield Reading(name, figure.value, low, figure.value if figure.high is None else figure.high)
