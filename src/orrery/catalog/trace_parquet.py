"""Parquet traces, with the columns of our own CSV; read by DuckDB (https://duckdb.org)."""

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.trace_csv import reader
from orrery.catalog.trace_table import Trace, gathered

MAGIC = b"PAR1"
"""The first bytes of every Parquet file."""


def parquet(path: Path, raw: bytes) -> Trace:
    """The trace in a Parquet file; rows are counted from 1."""
    columns = _columns(path, raw)
    read = reader(path, list(columns))
    rows = (
        read(path, f"row {number}", {n: None if v is None else str(v) for n, v in zip(columns, values, strict=True)})
        for number, values in enumerate(zip(*columns.values(), strict=True), 1)
    )
    return gathered(path, [row for row in rows if row])


def _columns(path: Path, raw: bytes) -> dict[str, list[Any]]:
    """Every column as plain values, None where there is none.

    DuckDB takes a name for a pattern (``*``, ``[``), so it is given the bytes under a name of ours.
    """
    library: Any = import_module("duckdb")  # 68 MB: only where a table is read
    with TemporaryDirectory() as folder, library.connect() as connection:
        copy = Path(folder) / "table.parquet"
        copy.write_bytes(raw)
        try:
            found: dict[str, Any] = connection.read_parquet(str(copy)).fetchnumpy()
        except library.Error as error:
            said = str(error).replace(str(copy), path.name).splitlines()[0][:120]
            raise ScenarioError(f"{path}: not readable as Parquet: {said}; write the trace again, or as CSV.") from None
    return {name: _plain(column) for name, column in found.items()}


def _plain(column: Any) -> list[Any]:
    """Python's own values; times to the microsecond, which is as fine as Python's are."""
    values: list[Any] = (column.astype("datetime64[us]") if column.dtype.kind == "M" else column).tolist()
    return values
