"""A table as a Parquet file, written by DuckDB (https://duckdb.org), which reads it again in one line of SQL."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray


def parquet_bytes(columns: Mapping[str, NDArray[Any]]) -> bytes:
    """The file, whole; columns are numbers (``nan`` becomes null) or text."""
    library: Any = import_module("duckdb")  # 68 MB: only where a table is written
    with TemporaryDirectory() as folder, library.connect() as connection:
        path = Path(folder) / "table.parquet"
        table = {name: np.ascontiguousarray(column) for name, column in columns.items()}
        connection.register("written", table)
        connection.sql("SELECT * FROM written").write_parquet(str(path), compression="zstd")
        return path.read_bytes()
