"""Views of an operator's answer: a table of variants, curves of a sweep, files."""

import json
from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.base.units import percent, text
from orrery.cli.output import console
from orrery.cli.scatter import LETTERS, can_plot, raster
from orrery.cli.sheet import Sheet

if TYPE_CHECKING:
    from orrery.scenario.kernel import KernelAnswer
    from orrery.scenario.kernel.answer import KernelRow

ROWS_SHOWN = 80
"""Largest number of rows of the table on the page; files have all."""

DETAILS_SHOWN = 7
HEIGHT = 16
LEFT = 10
UNITS = {"_bytes": "bytes", "_s": "s", "_w": "w", "_j": "j"}


def write_kernel(answer: "KernelAnswer", path: Path) -> None:
    """All rows as a table, the answer as JSON, or the curves of a sweep."""
    suffix = path.suffix.casefold()
    if suffix == ".json":
        write_atomically(path, json.dumps(answer.to_json(), allow_nan=False))
    elif suffix == ".csv":
        from orrery.cli.simulate_report.rows import csv_text
        from orrery.cli.sweep import columns_of

        cells = [row.cells() for row in answer.rows]
        keys = dict.fromkeys(key for row in cells for key in row)
        write_atomically(path, csv_text(columns_of([{key: row.get(key) for key in keys} for row in cells])))
    else:
        write_atomically(path, curves_svg(answer))


def print_kernel(answer: "KernelAnswer", *, requested: bool) -> None:
    """The table, the curves where something is swept, what binds, and what cannot run."""
    out = console()
    first = answer.rows[0]
    sizes = ", ".join(
        f"{key} {_size(value)}" for key, value in first.sizes.items() if value and key not in answer.swept
    )
    out.print(f"[bold]{answer.op}[/] on {', '.join(dict.fromkeys(row.device for row in answer.rows))}: {sizes}")
    out.print(_table(answer))
    if len(answer.rows) > ROWS_SHOWN:
        out.print(f"{len(answer.rows) - ROWS_SHOWN:,} more rows: write --out FILE.csv or --json.")
    if answer.swept and can_plot(out):
        out.print(curves_text(answer, min(out.width, 100)), markup=False, highlight=False)
    if not answer.swept:
        for row in answer.rows[:DETAILS_SHOWN]:
            out.print(f"{_name(answer, row)}: {_details(row)}", markup=False)
    classification = answer.declined if requested else answer.declined[:3]
    for d in classification:
        label = " ".join(word for word in (d.device, d.variant, d.format, d.engine) if word)
        out.print(f"declined: {label}: {d.reason}", markup=False)
    if len(answer.declined) > len(classification):
        out.print(f"{len(answer.declined) - len(classification)} more variants do not run there; --json says why.")


def _table(answer: "KernelAnswer") -> Sheet:
    has_devices = len({row.device for row in answer.rows}) > 1
    is_measured = any(row.measured for row in answer.rows)
    table = Sheet()
    if has_devices:
        table.add_column("device")
    for name in answer.swept:
        table.add_column(name.replace("_", " "), justify="right")
    table.add_column("variant")
    table.add_column("format", minor=1)
    table.add_column("kernels of", minor=1)
    table.add_column("time", justify="right")
    table.add_column("80 %", justify="right")
    if is_measured:
        table.add_column("measured", justify="right")
    table.add_column("bound by")
    table.add_column("of that roof", justify="right", minor=1)
    table.add_column("FLOP/s", justify="right", minor=1)
    table.add_column("bytes/s", justify="right", minor=1)
    fastest = {id(row) for row in answer.fastest()}
    for row in answer.rows[:ROWS_SHOWN]:
        roof_s = max(row.roofs_s.values(), default=0.0)
        interval = row.interval
        measured = [_measured(row)] if is_measured else []
        table.add_row(
            *([row.device] if has_devices else []),
            *(_size(row.sizes[name]) for name in answer.swept),
            row.variant,
            row.format,
            row.engine or "-",
            text(row.time_s, "s"),
            f"{text(interval.low_80, 's')} to {text(interval.high_80, 's')}" if interval else "not known",
            *measured,
            row.bound_by,
            percent(roof_s / row.time_s) if row.time_s else "-",
            text(row.flops / row.time_s, "flops") + "/s" if row.flops and row.time_s else "-",
            text(row.bytes / row.time_s, "bytes") + "/s" if row.time_s else "-",
            style="bold" if id(row) in fastest and len(answer.rows) > len(fastest) else None,
        )
    return table


def _measured(row: "KernelRow") -> str:
    if row.measured is None:
        return "-"
    return f"{text(row.measured.time_s, 's')} ({percent(row.time_s / row.measured.time_s - 1.0, is_signed=True)})"


def _details(row: "KernelRow") -> str:
    roofs = ", ".join(f"{key} {text(value, 's')}" for key, value in row.roofs_s.items())
    amounts = [text(value, unit) for value, unit in ((row.flops, "flops"), (row.bytes, "bytes")) if value]
    message = [f"roofs {roofs}", *([", ".join(amounts)] if amounts else [])]
    message += [f"{_label(key)} {_detail(key, value)}" for key, value in row.details.items()]
    return "; ".join([*message, row.because])


def _label(key: str) -> str:
    """A detail's name without the unit that its number carries."""
    for end in ("_per_s", "_s", "_bytes", "_w", "_j"):
        if key.endswith(end):
            return key.replace("_", " ") if end == "_per_s" else key.removesuffix(end).replace("_", " ")
    return key.replace("_", " ")


def _detail(key: str, value: Any) -> str:
    if isinstance(value, float):
        unit = next((u for end, u in UNITS.items() if key.endswith(end)), "")
        unit = "" if key.endswith("_per_s") else unit
        return text(value, unit) if unit else f"{value:.4g}"
    return str(value)


def _size(value: float) -> str:
    return f"{value:,.6g}" if isinstance(value, float) else f"{value:,}"


def _name(answer: "KernelAnswer", row: "KernelRow") -> str:
    """A row by what tells it from the others."""
    words = {
        "device": {r.device for r in answer.rows},
        "variant": {r.variant for r in answer.rows},
        "format": {r.format for r in answer.rows},
        "engine": {r.engine for r in answer.rows},
    }
    classification = [getattr(row, key) for key, values in words.items() if len(values) > 1]
    return " ".join(word for word in classification if word) or row.variant


def _series(answer: "KernelAnswer") -> tuple[str, dict[str, list["KernelRow"]]]:
    """The size that curves run over (the one with most values), and a curve for each combination of the rest."""
    over = max(answer.swept, key=lambda name: len(answer.swept[name]))
    others = [name for name in answer.swept if name != over]
    found: dict[str, list[KernelRow]] = {}
    for row in answer.rows:
        rest = [f"{name}={_size(row.sizes[name])}" for name in others]
        found.setdefault(" ".join([_name(answer, row), *rest]), []).append(row)
    return over, found


def curves_text(answer: "KernelAnswer", columns: int) -> str:
    """Times over the swept size, both in powers of ten; a letter for each curve."""
    over, series = _series(answer)
    points = [
        (letter, log10(max(float(row.sizes[over]), 1e-3)), log10(row.time_s))
        for letter, rows in zip(LETTERS, series.values(), strict=False)
        for row in rows
        if row.time_s > 0
    ]
    if not points:
        return ""
    marks, xs, ys = zip(*points, strict=True)
    wide, high = columns - LEFT - 2, HEIGHT
    ends = (min(xs), max(xs)), (min(ys), max(ys))
    lines = [f"time over {over.replace('_', ' ')}, powers of ten"]
    for i, cells in enumerate(raster(xs, ys, marks, (wide, high), *ends)):
        at = ends[1][1] - (ends[1][1] - ends[1][0]) * i / high
        lines.append(f"{text(10.0**at, 's') if i % 4 == 0 else '':>{LEFT - 1}} |{cells}")
    low, top = (f"{10.0**end:,.4g}" for end in ends[0])
    lines += [" " * LEFT + "+" + "-" * wide, " " * (LEFT + 1) + low + top.rjust(wide - len(low))]
    lines += [f"  {letter} {name}" for letter, name in zip(LETTERS, series, strict=False)]
    if len(series) > len(LETTERS):
        lines.append(f"  {len(series) - len(LETTERS)} more curves: write --out FILE.svg")
    return "\n".join(lines)


def curves_svg(answer: "KernelAnswer") -> str:
    """Times over the swept size with their intervals, as a drawing."""
    from orrery.drawing.axis import Axis
    from orrery.drawing.lines import Series, lines

    if not answer.swept:
        raise ScenarioError("out: curves need a sweep; write --sweep m=1:4096:x2 or so, or end the file in .csv.")
    over, series = _series(answer)
    curves = [
        Series(
            name,
            [float(row.sizes[over]) for row in rows],
            [row.time_s for row in rows],
            *_band(rows),
            is_dashed=any(row.interval is None for row in rows),
        )
        for name, rows in series.items()
    ]
    devices = ", ".join(dict.fromkeys(row.device for row in answer.rows))
    says = "Bands are 80 % intervals; dashed curves are mechanisms that nothing was measured of."
    unit = "bytes" if over.endswith("_bytes") else ""
    x, y = Axis(over.replace("_", " "), unit, is_log=True), Axis("time", "s", is_log=True)
    return lines(curves, x, y, title=f"{answer.op} on {devices}", says=says)


def _band(rows: Sequence["KernelRow"]) -> tuple[list[float], list[float]]:
    ends = [row.interval for row in rows]
    known = [end for end in ends if end]
    if len(known) != len(ends):
        return [], []
    return [end.low_80 for end in known], [end.high_80 for end in known]
