"""Parquet traces, with the columns of our own CSV; read by DuckDB (https://duckdb.org)."""

import threading
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.user_file import MAX_BYTES
from orrery.base.user_text import MAX_ROWS
from orrery.catalog.trace_csv import MAX_COLUMNS, reader
from orrery.catalog.trace_table import KNOWN, Trace, gathered

NESTED = frozenset({"list", "array", "struct", "map", "union"})
TEXTS = frozenset({"varchar", "blob"})

MAX_S = 30.0

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
        late = threading.Timer(MAX_S, connection.interrupt)
        late.daemon = True
        late.start()
        try:
            relation = connection.read_parquet(str(copy))
            _check_size(path, connection, relation)
            found: dict[str, Any] = relation.fetchnumpy()
        except library.InterruptException:
            raise ScenarioError(f"{path}: was not read within {MAX_S:g} s; write the trace as CSV.") from None
        except library.Error as error:
            text = str(error).replace(str(copy), path.name).splitlines()[0][:120]
            raise ScenarioError(f"{path}: not readable as Parquet: {text}; write the trace again, or as CSV.") from None
        finally:
            late.cancel()
    return {name: _plain(column) for name, column in found.items()}


def _check_size(path: Path, connection: Any, relation: Any) -> None:
    """Refuse what would fill the memory: a kilobyte of Parquet can hold a billion equal rows, or equal long texts."""
    names: list[str] = relation.columns
    if len(names) > MAX_COLUMNS:
        raise ScenarioError(f"{path}: {len(names):,} columns are no trace's; write {KNOWN}.")
    if nested := [n for n, kind in zip(names, relation.types, strict=True) if kind.id in NESTED]:
        raise ScenarioError(f"{path}: column {nested[0][:80]}: holds no plain values; write {KNOWN}.")
    ((num_rows,),) = relation.aggregate("count(*)").fetchall()
    if num_rows > MAX_ROWS:
        raise ScenarioError(f"{path}: {num_rows:,} rows are too many; at most {MAX_ROWS:,} are read. Split the file.")
    connection.execute("SET memory_limit = '4GB'")
    for name in (n for n, kind in zip(names, relation.types, strict=True) if kind.id in TEXTS):
        quoted = '"' + name.replace('"', '""') + '"'
        ((length,),) = relation.aggregate(f"coalesce(sum(octet_length(CAST({quoted} AS BLOB))), 0)").fetchall()
        if length > MAX_BYTES:
            raise ScenarioError(f"{path}: column {name[:80]}: holds {length:,} bytes; at most {MAX_BYTES:,} are read.")


def _plain(column: Any) -> list[Any]:
    """Python's own values; times to the microsecond, which is as fine as Python's are."""
    values: list[Any] = (column.astype("datetime64[us]") if column.dtype.kind == "M" else column).tolist()
    return values
