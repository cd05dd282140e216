"""The history that comes with orrery, as a table: a row a task, then its mean latency under every acceleration.

``tools/fit/accelerations.py`` makes it anew.
"""

import csv
import io
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.errors import FactError
from orrery.base.files import write_atomically
from orrery.predictors.acceleration.history import History
from orrery.predictors.acceleration.methods import METHODS, PLAIN
from orrery.predictors.acceleration.task import Task

FILE = Path(__file__).parent / "history.csv"
SEED = 0
NUM_TASKS = 600
TASK = {f.name: f.type for f in fields(Task)}


@cache
def stored_history() -> History:
    """The shipped runs."""
    return read_history(FILE)


def read_history(path: Path) -> History:
    """A table that ``write_history`` wrote."""
    with path.open(encoding="utf-8", newline="") as lines:
        table = csv.DictReader(lines)
        targets = [*TASK, PLAIN, *METHODS]
        if table.fieldnames != targets:
            raise FactError(f"{path.name}: columns are {table.fieldnames}; a history has {', '.join(targets)}.")
        rows = list(table)
    return History(
        tasks=tuple(Task(**{name: _typed(kind, row[name]) for name, kind in TASK.items()}) for row in rows),
        plain_s=np.array([float(row[PLAIN]) for row in rows]),
        latency_s=np.array([[float(row[method]) for method in METHODS] for row in rows]),
    )


def write_history(history: History, path: Path) -> None:
    """The table, whole or not at all."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([*TASK, PLAIN, *METHODS])
    for task, plain_s, latency_s in zip(history.tasks, history.plain_s, history.latency_s, strict=True):
        description = [getattr(task, name) for name in TASK]
        table.writerow([_short(value) for value in (*description, float(plain_s), *map(float, latency_s))])
    write_atomically(path, out.getvalue())


def _typed(kind: object, text: str) -> Any:
    return int(text) if kind is int else float(text) if kind is float else text


def _short(value: str | int | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
