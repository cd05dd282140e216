"""Measured tables: columns as arrays, blanks as NaN or the empty string."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import csv_table

KINDS = ("serving", "training", "kernel", "collective", "diffusion", "workload")


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
    header, rows = csv_table(read_user_text(path, "CSV table"), path.name)
    columns = [list(column) for column in zip(*rows, strict=True)] or [list[str]() for _ in header]
    return Table(path.name, dict(zip(header, columns, strict=True)))


def table_text(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> str:
    """Rows as the text of a CSV file: these columns, or all that occur; cells that a row does not have stay blank."""
    text = io.StringIO()
    names = columns or list(dict.fromkeys(column for row in rows for column in row))
    writer: csv.DictWriter[str] = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows({c: f"{v:.7g}" if isinstance(v, float) else v for c, v in row.items()} for row in rows)
    return text.getvalue()
