"""The library's file: SQLite with a write-ahead log, so that what was committed outlives any crash.

Other parts of the house keep tables of their own in it: ``extend`` makes them once.
"""

import sqlite3
import time
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from orrery.evidence.feed.extra import FeedError

VERSION = 1
"""Version of the tables below; a file of a later version is left alone."""

APPLICATION = 0x6F727279
"""Application id of the library's file: "orry"."""

PATIENCE_S = 10.0
"""How long to wait while another process writes."""

PAUSE_S = 0.02
"""Before a file is tried again that others are making."""

PASSING = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
"""SQLite's messages while others hold a file, where it does not wait by itself: such as when its journal changes."""

TABLES = """
create table entries (
    id text primary key, title text not null, title_key text not null, abstract text not null, source text not null,
    num_authors integer not null, authors text not null, published text, updated text, organisation text not null,
    categories text not null, url text not null, version integer not null, num_votes integer, num_comments integer,
    first_seen_on text not null
);
create index entries_by_title on entries (title_key);
create index entries_by_day on entries (published);
create table counts (
    entry text not null, seen_on text not null, num_votes integer, num_comments integer, primary key (entry, seen_on)
);
create table understood (entry text primary key, made_by text not null, body text not null);
create table marks (
    entry text primary key, is_read integer not null default 0, is_upvoted integer not null default 0
);
create table follows (kind text not null, what text not null, primary key (kind, what));
create table fetches (
    question text primary key, next_page integer not null, begun_at_s real not null, is_done integer not null
);
create table documents (
    url text primary key, etag text not null, last_modified text not null, fetched_at_s real not null
);
"""


class Store:
    """An open library. Use it in a ``with``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        end_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self._open()
                return
            except _Busy:  # others are making it, or are the last to close it: SQLite does not always wait for them
                if time.monotonic() > end_s:
                    raise
                time.sleep(PAUSE_S)

    def _open(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(self.path, timeout=PATIENCE_S, isolation_level=None)
        except (sqlite3.Error, OSError) as error:
            raise _unusable(self.path, error) from None
        self._connection.row_factory = sqlite3.Row
        try:
            if not self._is_ours():
                self._connection.execute("pragma journal_mode = wal")
                if not self._is_ours():  # made while we waited
                    self._make()
            self._connection.execute("pragma synchronous = full")
        except sqlite3.Error as error:
            self.close()
            raise _unusable(self.path, error) from None
        except FeedError:
            self.close()
            raise

    def _is_ours(self) -> bool:
        """Whether the file is made already. Refuses what somebody else, or a later orrery, wrote."""
        application, version, num_tables = self._marked()
        if application == APPLICATION and version > VERSION:
            raise FeedError(
                f"{self.path}: is of version {version}, and this orrery reads up to {VERSION}: upgrade it "
                "(pip install -U orrery-ai), or name another file with --library."
            )
        if application != APPLICATION and (application or version or num_tables):
            raise FeedError(f"{self.path}: is a database of another program; name another file with --library.")
        return application == APPLICATION

    def _marked(self) -> tuple[int, int, int]:
        """Application mark, version and number of tables of the file: all at one moment, as others may be making it."""
        is_own = not self._connection.in_transaction
        if is_own:
            self._connection.execute("begin")
        try:
            (num_tables,) = self._connection.execute("select count(*) from sqlite_master").fetchone()
            (application,) = self._connection.execute("pragma application_id").fetchone()
            (version,) = self._connection.execute("pragma user_version").fetchone()
        finally:
            if is_own and self._connection.in_transaction:
                self._connection.execute("rollback")
        return application, version, num_tables

    def _make(self) -> None:
        """The tables and the marks of a new file, all of them or none."""
        with self.transaction():
            if self._is_ours():  # made while we waited
                return
            self.execute("create table parts (name text primary key)")
            self.extend("entries", TABLES)
            self.execute(f"pragma application_id = {APPLICATION}")
            self.execute(f"pragma user_version = {VERSION}")

    def extend(self, part: str, tables: str) -> None:
        """Make the tables of a part of the house, unless an earlier call did."""
        if self.rows("select 1 from parts where name = ?", (part,)):
            return
        with self.transaction():
            if self.rows("select 1 from parts where name = ?", (part,)):  # made while we waited
                return
            for statement in tables.split(";"):
                if statement.strip():
                    self.execute(statement)
            self.execute("insert into parts values (?)", (part,))

    @contextmanager
    def transaction(self) -> Generator[None]:
        """All of what is inside, or nothing of it; one inside another belongs to the outer one."""
        if self._connection.in_transaction:
            yield
            return
        self.execute("begin immediate")
        try:
            yield
            self.execute("commit")
        except BaseException:
            if self._connection.in_transaction:  # SQLite takes some back by itself, such as where the disk is full
                self._connection.execute("rollback")
            raise

    def execute(self, sql: str, values: Sequence[Any] = ()) -> None:
        """One statement; nothing comes back."""
        self.rows(sql, values)

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[sqlite3.Row]:
        """Rows of one query."""
        try:
            return self._connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise _unusable(self.path, error) from None
        except UnicodeEncodeError:
            raise FeedError("What was typed holds bytes that are no letters; write it in UTF-8.") from None

    def many(self, sql: str, values: Iterable[Sequence[Any]]) -> None:
        """One statement for every row of values, all of them or none."""
        with self.transaction():
            for row in values:
                self.execute(sql, row)

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _Busy(FeedError):
    """Others hold the file."""


def _unusable(path: Path, error: Exception) -> FeedError:
    """Why a file cannot be used, and what to do."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in PASSING:
        return _Busy(f"{path}: another program has been writing to it for {PATIENCE_S:g} s; try again later.")
    return FeedError(f"{path}: cannot be used as a library: {error}. Name another file with --library.")
