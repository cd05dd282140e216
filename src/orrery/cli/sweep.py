"""``orrery simulate --sweep``: a table of runs, and files with a row each."""

import csv
import io
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.base.units import figures, percent
from orrery.cli.output import console, print_json
from orrery.cli.progress import bar, patience
from orrery.cli.report_file import write_report
from orrery.cli.sheet import Sheet
from orrery.cli.simulate_report import report_html
from orrery.cli.simulate_report.parquet import parquet_bytes
from orrery.scenario.sweep import Swept, sweep
from orrery.scenario.sweep.carried import CarriedOver
from orrery.scenario.sweep.rows import Cell, rows_of

if TYPE_CHECKING:
    from orrery.scenario.schema import Scenario

SUFFIXES = (".json", ".csv", ".parquet", ".html")
"""Suffixes of the formats a sweep can be written in."""

COLUMNS = (
    ("capacity_requests_per_s", "capacity req/s", ".4g"),
    ("limited_by", "limited by", ""),
    ("request_throughput", "req/s", ".4g"),
    ("output_throughput", "tok/s", ",.0f"),
    ("output_tokens_per_s_per_device", "/device", ",.0f"),
    ("output_tokens_per_s_per_user", "/user", ",.0f"),
    ("mean_ttft_ms", "TTFT ms", ",.0f"),
    ("p99_ttft_ms", "p99 TTFT ms", ",.0f"),
    ("mean_tpot_ms", "TPOT ms", ".3g"),
    ("p99_tpot_ms", "p99 TPOT ms", ".3g"),
    ("slo_attainment", "in time", "%"),
    ("request_goodput", "goodput", ".4g"),
    ("usd_per_million_tokens", "$/M out", ".3g"),
    ("saturated_first", "first limit", ""),
)
"""Key, heading and format of the columns on the page; those that nobody has are left out."""


MATTERS = (
    "capacity_requests_per_s",
    "request_throughput",
    "output_throughput",
    "mean_ttft_ms",
    "mean_tpot_ms",
    "slo_attainment",
    "usd_per_million_tokens",
)
"""Keys of the columns that keep their place on narrow terminals."""


def run_sweep(
    scenario: "Scenario",
    over: tuple[str, ...],
    is_json: bool,
    out: tuple[Path, ...],
    *,
    jobs: int,
    finds_capacity: bool,
    carry_over: bool,
    resume: Path | None,
    ray: str,
    report: Path | None,
) -> int:
    """Run the grid, write, print; 0 where a run came out, 3 where all are infeasible, else 2."""
    for path in out:
        if path.suffix.casefold() not in SUFFIXES or path.name.casefold().endswith((".trace.json", ".perfetto.json")):
            raise ScenarioError(
                f"out: {path.name!r} is nothing that a sweep is written as; end it in one of {', '.join(SUFFIXES)}."
            )
    with bar("runs") as tell:
        found = sweep(
            scenario,
            over=over,
            jobs=jobs,
            finds_capacity=finds_capacity,
            carry_over=carry_over,
            resume=resume,
            ray=ray,
            patience=patience(),
            on_run=tell,
        )
    plain = found.to_json()
    rows = rows_of(found.runs)
    write_report(report, "sweep", scenario, plain, over)
    for path in out:
        write_atomically(path, _content(found, plain, rows, path))
    if is_json:
        print_json(plain)
    else:
        print_sweep(found, rows)
    if found.answers:
        return 0
    print("orrery: no run of the sweep came out.", file=sys.stderr)
    return 2 if found.num_failed else 3


def _content(found: Swept, plain: Mapping[str, Any], rows: Sequence[Mapping[str, Cell]], path: Path) -> str | bytes:
    suffix = path.suffix.casefold()
    if suffix == ".json":
        return json.dumps(plain, allow_nan=False)
    if suffix == ".parquet":
        return parquet_bytes(columns_of(rows))
    if suffix == ".csv":
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        return text.getvalue()
    if not found.answers:
        raise ScenarioError(f"out: {path.name} would be empty, as no run came out; write .json to see why.")
    return report_html(found.answers)


def columns_of(rows: Sequence[Mapping[str, Cell]]) -> dict[str, np.ndarray[Any, Any]]:
    """Rows as columns of one type each: numbers with ``nan`` for what is missing, or text."""
    columns: dict[str, np.ndarray[Any, Any]] = {}
    for key in rows[0]:
        cells = [row[key] for row in rows]
        if all(cell is None or isinstance(cell, int | float) for cell in cells):
            columns[key] = np.array([np.nan if cell is None else float(cell) for cell in cells])
        else:
            columns[key] = np.array([None if cell is None else str(cell) for cell in cells], dtype=object)
    return columns


def print_sweep(found: Swept, rows: Sequence[Mapping[str, Cell]]) -> None:
    """The runs as a table, in the order of the grid; below it, what came to nothing."""
    out = console()
    table = Sheet()
    varied = list(found.points[0].values)
    shown = [c for c in COLUMNS if any(row.get(c[0]) is not None for row in rows)]
    for name in varied:
        table.add_column(name)
    for key, name, form in shown:
        table.add_column(name, justify="right" if form else "left", minor=0 if key in MATTERS else 1)
    for row in rows:
        if row["status"] == "done":
            table.add_row(
                *(_describe(row[name], "") for name in varied), *(_describe(row[key], form) for key, _, form in shown)
            )
    if found.answers:
        out.print(table)
    for run, row in zip(found.runs, rows, strict=True):
        if row["status"] != "done":
            out.print(f"{row['status']}: {run['label']}: {row['why']}", markup=False)
    if found.carried:
        out.print(_carried(found.carried))
    resumed = f", {found.num_resumed} of them from before" if found.num_resumed else ""
    out.print(f"{len(found.runs)} runs{resumed}, in {found.took_s:.1f} s")


def _carried(pairs: Sequence[CarriedOver]) -> Sheet:
    """Old optima on new devices, and what tuning again gains."""
    table = Sheet("from", "to", "old best", "there", pairs[0].metric, "new best", "retuned", "gain")
    for one in pairs:
        gain, there = one.retuning_gain_frac, one.carried_to
        table.add_row(
            one.old_device,
            one.new_device,
            _settings(one.old_best),
            "as it is" if there == one.old_best else "does not run" if there is None else _settings(there),
            "-" if one.carried is None else figures(one.carried),
            _settings(one.new_best),
            figures(one.best),
            "-" if gain is None else percent(gain, 1),
        )
    return table


def _settings(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items())


def _describe(cell: Cell, form: str) -> str:
    if cell is None:
        return "-"
    if form == "%":
        return percent(float(cell), 1)
    if form and not isinstance(cell, str):
        return figures(float(cell), int(form[1])) if form.endswith("g") else format(cell, form)
    return figures(cell, 6) if isinstance(cell, float) else str(cell)
