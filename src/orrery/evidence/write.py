"""The rows of checked tables written back with what orrery predicts beside what was measured."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.evidence.checked import Checked

DECLINED = "declined"


def write_rows(path: Path, tables: Sequence[Checked]) -> None:
    """Write all rows to one CSV file: their own cells, ``predicted_*`` and ``error_*`` columns, and why declined."""
    if path.suffix != ".csv":
        raise ScenarioError(f"--out: {path.name!r} is no CSV file; write a name that ends in .csv.")
    if not path.parent.is_dir():
        raise ScenarioError(f"--out: there is no folder {str(path.parent)!r}.")
    metrics = sorted({m for t in tables for m in t.answers.predicted if m in t.measured})
    own = list(dict.fromkeys(c for t in tables for c in t.table.columns))
    added = [f"{word}_{m}" for m in metrics for word in ("predicted", "error")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*own, *added, DECLINED])
    for t in tables:
        writer.writerows(_rows(t, own, metrics))
    write_atomically(path, text.getvalue())


def _rows(checked: Checked, own: Sequence[str], metrics: Sequence[str]) -> list[list[str]]:
    """The cells of one table's rows, in the order of the header."""
    size = len(checked.table)
    columns = [checked.table.columns.get(c, [""] * size) for c in own]
    for metric in metrics:
        predicted = checked.answers.predicted.get(metric, np.full(size, np.nan))
        error = np.full(size, np.nan)
        scored = checked.scored(metric)
        if scored.any():
            error[scored] = checked.error(metric, scored)
        columns += [[_cell(v) for v in predicted], [_cell(v) for v in error]]
    columns.append([checked.answers.declined.get(row, "") for row in range(size)])
    return [list(row) for row in zip(*columns, strict=True)]


def _cell(value: float) -> str:
    """Seven digits, and nothing where there is no number."""
    return f"{value:.7g}" if np.isfinite(value) else ""
