"""A paper's drawings: where it helps and where it hurts, and its claims beside what is predicted for them."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from orrery.drawing import Axis, Series, intervals, lines
from orrery.drawing import Reading as Row
from orrery.evidence.amounts import amount, input_name, input_text, metric_name
from orrery.evidence.find.crossing import LOGARITHMIC_RATIO, Reading
from orrery.evidence.judge.claim_result import ClaimResult
from orrery.evidence.verdict import accepted
from orrery.web.both_widths import at_both_widths
from orrery.web.papers.messages import describe

MIN_ROWS, MAX_ROWS = 2, 24
LOGARITHMIC_CLAIMS = 30.0
"""Claims that span more than this are drawn on powers of ten."""

_UNITS = ("bytes", "s", "w", "hz", "j", "flops", "frac", "tokens")


def curve(reading: Reading) -> str:
    """The prediction over the input: a line where the input is a number, else a row for each of its words."""
    name = metric_name(reading.metric)
    title = f"{name[:1].upper()}{name[1:]} over {input_name(reading.input)}"
    against = f"against {describe(reading.baseline, 60)}" if reading.baseline else ""
    numbers = _numbers(reading)
    predicted = [point.predicted for point in reading.points]
    if numbers is None:
        return _rows(reading, title, against)
    high = max(numbers)
    is_log = numbers[0] > 0.0 and high > LOGARITHMIC_RATIO * numbers[0]
    x = Axis(input_name(reading.input), _unit(reading.input), is_log)
    series = [Series("predicted", numbers, predicted)]
    if reading.neutral is not None:
        series.append(Series("no gain, no loss", (numbers[0], high), (reading.neutral,) * 2, is_dashed=True))
    mark = (reading.crossings[0], "turns here") if len(reading.crossings) == 1 else None
    return lines(series, x, Axis(metric_name(reading.metric), reading.unit), title=title, says=against, mark=mark)


def _rows(reading: Reading, title: str, says: str) -> str:
    rows = [
        Row(
            input_text(reading.input, p.value),
            p.predicted,
            p.predicted if n is None else min(p.predicted, n),
            p.predicted if n is None else max(p.predicted, n),
        )
        for p in reading.points
        for n in [reading.neutral]
    ]
    axis = Axis(metric_name(reading.metric), reading.unit)
    from_neutral = "" if reading.neutral is None else f"bars begin at {amount(reading.neutral, reading.unit)}, no gain"
    return intervals(rows, axis, title=title, says=", ".join(word for word in (says, from_neutral) if word))


def _numbers(reading: Reading) -> list[float] | None:
    """The input's values where they are numbers that grow."""
    found = [float(p.value) for p in reading.points if not isinstance(p.value, bool | str)]
    is_rising = len(found) == len(reading.points) and all(a < b for a, b in pairwise(found))
    return found if is_rising and found else None


def _unit(name: str) -> str:
    if name.endswith("_bytes_per_s"):
        return "bytes_per_s"
    words = name.split("_")
    return words[-1] if words[-1] in _UNITS and words[0] not in ("num", "max") and len(words) > 1 else ""


def claims(judged: Sequence[ClaimResult]) -> tuple[str, ...]:
    """A drawing for each unit: what is reported with its tolerance, and the prediction."""
    units: dict[str, list[ClaimResult]] = {}
    for j in judged:
        if j.predicted is not None:
            units.setdefault(j.claim.unit, []).append(j)
    by_size = sorted(units.items(), key=lambda pair: -len(pair[1]))
    return tuple(at_both_widths(partial(_claims, unit, rows)) for unit, rows in by_size if len(rows) >= MIN_ROWS)


def _claims(unit: str, judged: Sequence[ClaimResult]) -> str:
    shown = sorted(judged, key=lambda j: j.claim.origin != "abstract")[:MAX_ROWS]
    rows = [_row(j) for j in shown]
    values = [abs(v) for row in rows for v in (row.value, row.other or 0.0) if v]
    is_log = all(row.value > 0.0 and (row.other or 0.0) > 0.0 for row in rows) and bool(values)
    is_log = is_log and max(values) > LOGARITHMIC_CLAIMS * min(values)
    title = {"ratio": "Claims: how many times better", "frac": "Claims: how much less or more"}.get(
        unit, f"Claims in {unit.replace('_per_', '/').replace('_', ' ')}"
    )
    axis = Axis("", unit, is_log)
    return intervals(rows, axis, title=title, names=("reported, with its tolerance", "predicted"))


def _row(j: ClaimResult) -> Row:
    low, high = j.claim.low, j.claim.high
    ends = accepted(j.claim)
    return Row(describe(j.claim.id, 60), (low + high) / 2.0, *ends, j.predicted)
