"""The rates of a link over time: a file of the user's, or a named uplink drawn with a seed."""

import math
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import csv_table
from orrery.catalog.links import NAMES, uplink

BYTES_PER_S_OF_MBIT = 1e6 / 8.0
COLUMNS = ("time_s", "mbit_per_s")
MAX_FILE_BYTES = 50_000_000
DRAWN_S = 600.0
"""Length of a trace that is drawn."""

Floats = NDArray[np.float64]


def link_trace(text: str, seed: int) -> tuple[Floats, Floats, float]:
    """Times (s), rates (bytes/s) and the end (s) of the trace that the text names."""
    if text in NAMES:
        return (*uplink(text).trace(DRAWN_S, seed), DRAWN_S)
    if not text.endswith((".csv", ".csv.gz")):
        raise ScenarioError(
            f"link_trace: got {text[:80]!r}; write {', '.join(NAMES)} or a CSV file of time_s,mbit_per_s."
        )
    return _read(Path(text))


def _read(path: Path) -> tuple[Floats, Floats, float]:
    header, rows = csv_table(read_user_text(path, "link trace", MAX_FILE_BYTES), path)
    if set(header) != set(COLUMNS):
        raise ScenarioError(f"{path}: columns {', '.join(header)[:80]}; write time_s and mbit_per_s.")
    places = [header.index(name) for name in COLUMNS]
    found = [
        [_number(path, i, cells[place], name) for place, name in zip(places, COLUMNS, strict=True)]
        for i, cells in enumerate(rows, start=2)
    ]
    if len(found) < 2:
        raise ScenarioError(f"{path}: {len(found)} rows; write two or more: the last says when the trace ends.")
    times, rates = np.array(found).T
    if (late := np.flatnonzero(np.diff(times) <= 0.0)).size:
        raise ScenarioError(
            f"{path}: line {late[0] + 3}: time_s {times[late[0] + 1]:g} comes after {times[late[0]]:g}; "
            "write times in rising order."
        )
    if (rates <= 0.0).any():
        raise ScenarioError(f"{path}: line {np.flatnonzero(rates <= 0.0)[0] + 2}: mbit_per_s must be above 0.")
    return times - times[0], rates * BYTES_PER_S_OF_MBIT, float(times[-1] - times[0])


def _number(path: Path, line: int, cell: str, name: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ScenarioError(f"{path}: line {line}: {name}: got {cell[:40]!r}; write a number.")
    return value
