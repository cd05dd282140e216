"""The file of runs: one SQLite database, written by one process at a time, read by any.

What is committed outlives the end of any process, however it ends (write-ahead log). Whoever ends a run does so on the
condition that it still runs, so that what was cancelled stays cancelled.
"""

import json
import sqlite3
import time
import zlib
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from threading import Lock
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.web.work.run import Run, State

VERSION = 1
PATIENCE_S = 20.0
"""How long one writer waits for another."""

TABLES = """
CREATE TABLE runs (
  id TEXT PRIMARY KEY, kind TEXT NOT NULL, settings TEXT NOT NULL, options TEXT NOT NULL, state TEXT NOT NULL,
  phase TEXT NOT NULL, done INTEGER NOT NULL, total INTEGER NOT NULL, message TEXT NOT NULL, created_s REAL NOT NULL,
  started_s REAL, ended_s REAL
) STRICT;
CREATE INDEX runs_by_state ON runs (state, created_s);
CREATE TABLE parts (
  run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE, name TEXT NOT NULL, body BLOB NOT NULL,
  PRIMARY KEY (run, name)
) STRICT;
"""

COLUMNS = tuple(f.name for f in fields(Run))


class Store:
    """The file, open. Any thread may ask."""

    def __init__(self, path: Path) -> None:
        self._lock = Lock()
        self._file = sqlite3.connect(path, PATIENCE_S, isolation_level=None, check_same_thread=False)
        try:
            self._file.execute("PRAGMA journal_mode = WAL")
            self._file.execute("PRAGMA synchronous = NORMAL")
            self._file.execute("PRAGMA foreign_keys = ON")
            self._make(path)
        except sqlite3.DatabaseError as error:
            self._file.close()
            raise ScenarioError(f"{path}: cannot be read as a file of runs ({error}); move it away.") from None
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()

    # -- asking -------------------------------------------------------------------------------------------------------

    def get(self, id: str) -> Run | None:
        """The run, or None."""
        return next(iter(self._runs("WHERE id = ?", id)), None)

    def newest(self, limit: int) -> tuple[Run, ...]:
        """The newest first."""
        return self._runs("ORDER BY created_s DESC, rowid DESC LIMIT ?", limit)

    def next_queued(self) -> Run | None:
        """The one that has waited longest."""
        return next(iter(self._runs("WHERE state = 'queued' ORDER BY created_s, rowid LIMIT 1")), None)

    def num_queued(self) -> int:
        """How many wait."""
        return int(self._rows("SELECT count(*) FROM runs WHERE state = 'queued'")[0][0])

    def part(self, id: str, name: str) -> bytes | None:
        """A part of a result."""
        rows = self._rows("SELECT body FROM parts WHERE run = ? AND name = ?", id, name)
        return zlib.decompress(rows[0][0]) if rows else None

    def part_names(self, id: str) -> tuple[str, ...]:
        """Names of the result's parts."""
        return tuple(row[0] for row in self._rows("SELECT name FROM parts WHERE run = ? ORDER BY name", id))

    # -- changing -----------------------------------------------------------------------------------------------------

    def add(self, run: Run) -> None:
        """A new one."""
        values = [json.dumps(v) if isinstance(v := getattr(run, c), Mapping) else v for c in COLUMNS]
        self._change(f"INSERT INTO runs ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})", *values)

    def start(self, id: str) -> bool:
        """From queued to running; False where it is not queued any more."""
        return self._change(
            "UPDATE runs SET state = 'running', phase = 'starting', started_s = ? WHERE id = ? AND state = 'queued'",
            time.time(),
            id,
        )

    def tell(self, id: str, phase: str, done: int, total: int, message: str) -> bool:
        """Record the progress; False where the run has ended."""
        return self._change(
            "UPDATE runs SET phase = ?, done = ?, total = ?, message = ? WHERE id = ? AND state = 'running'",
            phase,
            done,
            total,
            message,
            id,
        )

    def count(self, id: str, phase: str, done: int) -> None:
        """Count the progress while the run is in that phase."""
        self._change(
            "UPDATE runs SET done = min(?, total) WHERE id = ? AND state = 'running' AND phase = ?", done, id, phase
        )

    def end(self, id: str, state: State, message: str = "", parts: Mapping[str, bytes] | None = None) -> bool:
        """It has come to an end; its result is kept whole or not at all. False where it did not run any more."""
        packed = [(id, name, zlib.compress(body, 6)) for name, body in (parts or {}).items()]
        with self._writing() as file:
            changed = file.execute(
                "UPDATE runs SET state = ?, message = ?, ended_s = ? WHERE id = ? AND state = 'running'",
                (state, message, time.time(), id),
            ).rowcount
            if changed:
                file.executemany("INSERT INTO parts (run, name, body) VALUES (?, ?, ?)", packed)
        return bool(changed)

    def cancel(self, id: str) -> bool:
        """No more of it; False where it has ended already."""
        return self._change(
            "UPDATE runs SET state = 'cancelled', ended_s = ? WHERE id = ? AND state IN ('queued', 'running')",
            time.time(),
            id,
        )

    def interrupt(self) -> None:
        """Whatever runs has lost its process."""
        self._change("UPDATE runs SET state = 'interrupted', ended_s = ? WHERE state = 'running'", time.time())

    def forget(self, id: str) -> bool:
        """Delete what has ended; False where there is none, or it goes on."""
        return self._change("DELETE FROM runs WHERE id = ? AND state NOT IN ('queued', 'running')", id)

    def thin(self, most: int) -> None:
        """Keep the newest; those that go on stay in any case."""
        self._change(
            "DELETE FROM runs WHERE state NOT IN ('queued', 'running') AND id NOT IN "
            "(SELECT id FROM runs ORDER BY created_s DESC, rowid DESC LIMIT ?)",
            most,
        )

    # -- the file -----------------------------------------------------------------------------------------------------

    def _make(self, path: Path) -> None:
        """The tables, where the file is new."""
        with self._writing() as file:
            found = int(file.execute("PRAGMA user_version").fetchone()[0])
            if not found:
                for statement in filter(str.strip, TABLES.split(";")):
                    file.execute(statement)
                file.execute(f"PRAGMA user_version = {VERSION}")
        if found not in (0, VERSION):
            raise ScenarioError(
                f"{path}: was written by another version of orrery; move it away, or use another --home."
            )

    def _runs(self, where: str, *values: Any) -> tuple[Run, ...]:
        rows = self._rows(f"SELECT {', '.join(COLUMNS)} FROM runs {where}", *values)
        return tuple(_run(row) for row in rows)

    def _rows(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock:
            return self._file.execute(query, values).fetchall()

    def _change(self, statement: str, *values: Any) -> bool:
        with self._lock:
            return self._file.execute(statement, values).rowcount > 0

    @contextmanager
    def _writing(self) -> Any:
        """All or nothing."""
        with self._lock:
            self._file.execute("BEGIN IMMEDIATE")
            try:
                yield self._file
            except BaseException:
                self._file.execute("ROLLBACK")
                raise
            self._file.execute("COMMIT")


def _run(row: tuple[Any, ...]) -> Run:
    found = dict(zip(COLUMNS, row, strict=True))
    return Run(**found | {name: json.loads(found[name]) for name in ("settings", "options")})
