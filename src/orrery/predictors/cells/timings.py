"""Timings of the user's own machine: a table of networks of NAS-Bench-201 and how long each took.

network,latency_s
340122,0.0031

A network is six digits, the operation of each edge. The ten that a machine is known by must be among them.
"""

from pathlib import Path

import numpy as np

from orrery.base.errors import ScenarioError, shown
from orrery.base.user_file import read_user_text
from orrery.base.user_text import csv_table
from orrery.predictors.cells.latency import Floats
from orrery.predictors.cells.space import Cells, Space


def read_timings(path: Path, space: Space, references: Cells) -> tuple[Floats, Cells, Floats]:
    """Latencies of the references in their order, then every other network with its own."""
    header, lines = csv_table(read_user_text(path, "table of timings (CSV)"), path)
    if missing := [name for name in ("network", "latency_s") if name not in header]:
        raise ScenarioError(f"{path}: lacks {', '.join(missing)}; write columns network,latency_s.")
    known = dict(_timing(dict(zip(header, cells, strict=True)), space, path) for cells in lines)
    needed = [text_of(cell) for cell in references]
    if lacking := [name for name in needed if name not in known]:
        raise ScenarioError(f"{path}: a machine is known by ten networks; time {', '.join(lacking)} too.")
    others = [name for name in known if name not in needed]
    cells = np.array([[int(digit) for digit in name] for name in others], dtype=np.int64)
    return (
        np.array([known[name] for name in needed]),
        cells.reshape(-1, len(space.num_alternatives)),
        np.array([known[name] for name in others]),
    )


def text_of(cell: Cells) -> str:
    """A network as its digits."""
    return "".join(str(int(choice)) for choice in cell)


def _timing(row: dict[str, str], space: Space, path: Path) -> tuple[str, float]:
    name, counts = row["network"].strip(), space.num_alternatives
    if len(name) != len(counts) or not all(c.isdecimal() and int(c) < n for c, n in zip(name, counts, strict=True)):
        raise ScenarioError(
            f"{path}: network {shown(name)}; write {len(counts)} digits, each from 0 to {min(counts) - 1}."
        )
    try:
        latency_s = float(row["latency_s"])
    except ValueError:
        latency_s = np.nan
    if not 0.0 < latency_s < np.inf:
        raise ScenarioError(f"{path}: latency_s of {name}: got {shown(row['latency_s'])}; write seconds above 0.")
    return name, latency_s
