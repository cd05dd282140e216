"""Simulates the history of accelerations that the selector of ``orrery.predictors.acceleration`` learns from.

python tools/fit/accelerations.py        # a minute or two; the same file on every machine
"""

import csv
import io
from pathlib import Path

from orrery.base.files import write_atomically
from orrery.predictors.acceleration.history import History, drawn_tasks, simulated
from orrery.predictors.acceleration.methods import METHODS, PLAIN
from orrery.predictors.acceleration.stored import FILE, SEED, TASK

NUM_TASKS = 600


def write_history(history: History, path: Path) -> None:
    """The table, whole or not at all."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([*TASK, PLAIN, *METHODS])
    for task, plain_s, latency_s in zip(history.tasks, history.plain_s, history.latency_s, strict=True):
        description = [getattr(task, name) for name in TASK]
        table.writerow([_short(value) for value in (*description, float(plain_s), *map(float, latency_s))])
    write_atomically(path, out.getvalue())


def _short(value: str | int | float) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def main() -> None:
    """Draw, simulate, write."""
    write_history(simulated(drawn_tasks(NUM_TASKS, SEED), SEED), FILE)
    print(f"{NUM_TASKS} tasks in {FILE}")


if __name__ == "__main__":
    main()
