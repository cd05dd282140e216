"""Parquet traces, with the columns of our own CSV. Needs the package ``pyarrow``, which is asked for only here."""

import io
from importlib import import_module
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.trace_csv import reader
from orrery.catalog.trace_table import Trace, gathered

MAGIC = b"PAR1"
"""The first bytes of every Parquet file."""


def parquet(path: Path, raw: bytes) -> Trace:
    """The trace in a Parquet file; rows are counted from 1."""
    try:
        library: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise ScenarioError(
            f"{path}: reading Parquet needs the package pyarrow; write: pip install pyarrow, or give the trace as CSV."
        ) from None
    try:
        table: Any = library.read_table(io.BytesIO(raw))
        columns: dict[str, list[Any]] = {str(name): table.column(name).to_pylist() for name in table.column_names}
    except Exception as error:  # the library's own kinds of error, many of them outside any common one
        said = str(error).splitlines()[0][:120]
        raise ScenarioError(f"{path}: not readable as Parquet: {said}; write the trace again, or as CSV.") from None
    read = reader(path, list(columns))
    rows = (
        read(path, f"row {number}", {n: None if v is None else str(v) for n, v in zip(columns, values, strict=True)})
        for number, values in enumerate(zip(*columns.values(), strict=True), 1)
    )
    return gathered(path, [row for row in rows if row])
