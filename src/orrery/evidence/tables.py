"""Measured tables: columns as arrays, blanks as NaN or the empty string."""

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import MOST_LISTED, ScenarioError
from orrery.base.user_file import read_user_text

KINDS = ("serving", "training", "kernel", "collective")


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Rows of one file. ``columns`` keeps the text of every cell, in the file's order."""

    name: str
    columns: dict[str, list[str]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def words(self, column: str) -> NDArray[np.str_]:
        """A column as text; a missing column is all blanks."""
        return np.array(self.columns.get(column, [""] * len(self)), dtype=np.str_)

    def numbers(self, column: str) -> NDArray[np.float64]:
        """A column as floats, NaN where blank or absent; a word in a numeric column is refused with its row."""
        out = np.full(len(self), np.nan)
        for row, cell in enumerate(self.columns.get(column, ())):
            if cell:
                try:
                    out[row] = float(cell)
                except ValueError:
                    raise ScenarioError(
                        f"{self.name}, row {row + 2}, column {column}: {cell!r} is not a number; "
                        "leave the cell empty where the value is unknown."
                    ) from None
        return out

    def take(self, rows: NDArray[np.bool_] | Sequence[int] | NDArray[np.int64]) -> "Table":
        """The same table with only these rows (a mask or indices)."""
        index = np.arange(len(self))[np.asarray(rows)]
        return Table(self.name, {c: [v[i] for i in index] for c, v in self.columns.items()})


def read_table(path: Path) -> Table:
    """Read a ``.csv`` or ``.csv.gz`` file; refuses what is not a table, naming what was found."""
    text = read_user_text(path, "CSV table")
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error as error:
        raise ScenarioError(f"{path.name}: cannot be read as CSV text: {error}.") from None
    if not rows or not any(rows[0]):
        raise ScenarioError(f"{path.name}: is empty; the first line must name the columns.")
    header = [h.strip() for h in rows[0]]
    if len(set(header)) != len(header):
        twice = sorted(h for h, count in Counter(header).items() if count > 1)
        shown = ", ".join(twice[:MOST_LISTED]) + (", …" if len(twice) > MOST_LISTED else "")
        raise ScenarioError(f"{path.name}: column {shown} is named twice.")
    for number, row in enumerate(rows[1:], start=2):
        if row and len(row) != len(header):
            raise ScenarioError(f"{path.name}, row {number}: has {len(row)} cells, the header names {len(header)}.")
    cells = [[c.strip() for c in row] for row in rows[1:] if row]
    return Table(path.name, {h: [row[i] for row in cells] for i, h in enumerate(header)})


def table_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as the text of a CSV file: these columns, or all that occur; cells that a row does not have stay blank."""
    text = io.StringIO()
    names = columns or list(dict.fromkeys(column for row in rows for column in row))
    writer: csv.DictWriter[str] = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({c: f"{v:.7g}" if isinstance(v, float) else v for c, v in row.items()} for row in rows)
    return text.getvalue()
