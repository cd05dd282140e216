"""A user's program as a table: a line an operation, in order, with what it writes, reads and computes."""

import math
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import csv_table
from orrery.execution.offload.mapping_graphs import Operation

COLUMNS = ("operation", "out_bytes", "reads", "flops", "weight_bytes")


def read_program(path: Path) -> list[Operation]:
    """The operations of a CSV file; names of what one reads have spaces between."""
    header, rows = csv_table(read_user_text(path, "table of operations"), path)
    if missing := [name for name in COLUMNS if name not in header]:
        raise ScenarioError(f"{path}: has no column {missing[0]}; write {', '.join(COLUMNS)}.")
    known: dict[str, Operation] = {}
    for number, cells in enumerate(rows, 2):
        one = _operation(dict(zip(header, cells, strict=True)), f"{path}, row {number}")
        if one.name in known:
            raise ScenarioError(f"{path}, row {number}: {one.name[:60]!r} stands twice; write each operation once.")
        if unknown := [name for name in one.reads if name not in known]:
            raise ScenarioError(f"{path}, row {number}: no row above writes {unknown[0][:60]!r}.")
        known[one.name] = one
    if not known:
        raise ScenarioError(f"{path}: has no operations; write a row for each.")
    return list(known.values())


def _operation(row: dict[str, str], where: str) -> Operation:
    numbers = {name: _number(row[name], name, where) for name in ("out_bytes", "flops", "weight_bytes")}
    name = row["operation"]
    if not name or " " in name or numbers["out_bytes"] == 0.0:
        raise ScenarioError(f"{where}: write an operation without spaces, and out_bytes above 0.")
    weight = numbers["weight_bytes"]
    return Operation(
        name=name,
        out_bytes=numbers["out_bytes"],
        reads=tuple(row["reads"].split()),
        flops=numbers["flops"],
        weights={f"{name} weights": weight} if weight else {},
    )


def _number(text: str, name: str, where: str) -> float:
    """A number from 0; blank is 0."""
    try:
        value = float(text or 0.0)
    except ValueError:
        value = math.nan
    if not 0.0 <= value <= 1e18:
        raise ScenarioError(f"{where}: {name}: got {text[:40]!r}; write a number from 0 to 1e18.")
    return value
