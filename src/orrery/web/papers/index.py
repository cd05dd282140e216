"""All papers in memory, ready to be searched: those with a file and, where asked for, the reader's new ones.

Making an index takes longer than a page may: a third of a second for the papers with a file. It is begun in the
background when a list is first looked at, and made anew when a paper has come, gone or changed.
"""

import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock, Thread

from orrery.base.errors import OrreryError
from orrery.evidence.feed.store import Store
from orrery.evidence.find.document import Document
from orrery.evidence.find.entry import entry_of
from orrery.evidence.find.filters import Filters, select
from orrery.evidence.find.library_cache import library, stamp
from orrery.evidence.find.search import Finder, QueryResult
from orrery.evidence.library import library_file
from orrery.evidence.understanding.paper_lookup import fetched_documents, named
from orrery.evidence.understanding.understand import house

LOOK_S = 1.0
"""A paper file that changed is seen within this time."""

MAX_QUERY = 300
"""Letters of a query that are read."""


class Index:
    """The papers of one library."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        self._stamped, self._looked_s = "", -LOOK_S
        self._documents: tuple[str, tuple[Document, ...]] = "", ()
        self._fetched: tuple[str, tuple[Document, ...]] = "", ()
        self._finders: dict[bool, tuple[tuple[str, str], Finder]] = {}
        self._filling, self._searching = Lock(), Lock()

    def documents(self, has_new: bool = False) -> tuple[Document, ...]:
        """Every paper with a file; with ``has_new`` the reader's new ones as well."""
        with self._lock:
            now = self._stamp()
            if now != self._documents[0]:
                self._documents = now, library()
            if has_new and (mark := self._mark(now)) != self._fetched[0]:
                self._fetched = mark, self._read()
            return self._documents[1] + (self._fetched[1] if has_new else ())

    def search(self, query: str, filters: Filters, *, has_new: bool, limit: int) -> QueryResult:
        """The best papers for a query among those that pass the filters."""
        finder = self.finder(has_new)
        among = select(finder.documents, filters)
        with self._searching:
            return finder.search(query[:MAX_QUERY], among=among, limit=limit)

    def finder(self, has_new: bool = False) -> Finder:
        """The index itself, made where it is not."""
        documents = self.documents(has_new)
        state = self._documents[0], self._fetched[0] if has_new else ""
        with self._filling:
            kept_for, finder = self._finders.get(has_new, (None, None))
            if finder is None or kept_for != state:
                finder = Finder(documents)
                self._finders[has_new] = state, finder
        return finder

    def fill(self) -> None:
        """Make the index in the background, unless it is there."""
        if False not in self._finders and not self._filling.locked():
            Thread(target=self._fill, name="orrery-papers", daemon=True).start()

    def _fill(self) -> None:
        """The index, and what every entry needs: technique files and the scorecard, read with the first paper."""
        finder = self.finder()
        with suppress(OrreryError):  # whoever opens that paper is told
            entry_of(named(finder.documents[0].key), finder)

    def _stamp(self) -> str:
        """Stamp of the paper files; they are looked at once a second."""
        if time.monotonic() - self._looked_s > LOOK_S:
            self._stamped, self._looked_s = stamp(), time.monotonic()
        return self._stamped

    def _mark(self, now: str) -> str:
        """Changes when a new paper comes or changes."""
        if not self._path.exists():
            return now
        with Store(self._path) as store:
            (row,) = store.rows(
                "select count(*) as num, max(rowid) as latest, total(length(title) + length(abstract)) as letters, "
                "total(version) as versions from entries"
            )
        return "|".join(map(str, (now, house(), *row)))

    def _read(self) -> tuple[Document, ...]:
        if not self._path.exists():
            return ()
        with Store(self._path) as store:
            return fetched_documents(store)


def index_of(path: Path | None) -> Index:
    """The one index of a library."""
    return _index(library_file(path))


@cache
def _index(file: Path) -> Index:
    return Index(file)
