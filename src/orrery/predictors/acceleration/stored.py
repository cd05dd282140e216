"""The history that comes with orrery, as a table: a row a task, then its mean latency under every acceleration.

``tools/fit/accelerations.py`` makes it anew.
"""

import csv
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from orrery.base.errors import FactError
from orrery.predictors.acceleration.history import History
from orrery.predictors.acceleration.methods import METHODS, PLAIN
from orrery.predictors.acceleration.task import Task

FILE = Path(__file__).parent / "history.csv"
SEED = 0
TASK = {f.name: f.type for f in fields(Task)}


@cache
def stored_history() -> History:
    """The shipped runs."""
    return read_history(FILE)


def read_history(path: Path) -> History:
    """A table of runs."""
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


def _typed(kind: object, text: str) -> Any:
    return int(text) if kind is int else float(text) if kind is float else text
