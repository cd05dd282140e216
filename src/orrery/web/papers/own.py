"""The reader's own library, opened for the length of one request; and what of it is marked."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from shlex import quote

from orrery.evidence.feed.marks import Marks, read_marks
from orrery.evidence.feed.record import Record
from orrery.evidence.feed.records import all_records
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_id, title_key
from orrery.evidence.library import library_file
from orrery.web.place import Place


@contextmanager
def opened(place: Place) -> Generator[Store]:
    """The library's file, made where it is not there yet."""
    with Store(library_file(place.library)) as store:
        yield store


def command(place: Place, words: str) -> str:
    """Command line for the same library: ``orrery papers fetch``."""
    return " ".join(("orrery papers", words, *(("--library", quote(str(place.library))) if place.library else ())))


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """The reader's marks and the records of papers, by whatever a paper may be known by: a paper file has a key,
    a fetched paper an id."""

    marks: Marks = field(default_factory=Marks)
    read_titles: frozenset[str] = frozenset()
    upvoted_titles: frozenset[str] = frozenset()
    records: Mapping[str, tuple[Record, ...]] = field(default_factory=dict[str, tuple[Record, ...]])

    def is_read(self, key: str, arxiv: str, title: str) -> bool:
        """Whether the paper is marked as read."""
        return bool(self.marks.read & _names(key, arxiv, title)) or title_key(title) in self.read_titles

    def is_upvoted(self, key: str, arxiv: str, title: str) -> bool:
        """Whether the paper is marked as good."""
        return bool(self.marks.upvoted & _names(key, arxiv, title)) or title_key(title) in self.upvoted_titles

    def records_of(self, arxiv: str, title: str) -> tuple[Record, ...]:
        """Records of a paper."""
        return (*self.records.get(arxiv, ()), *self.records.get(title_id(title), ()))


def _names(key: str, arxiv: str, title: str) -> frozenset[str]:
    return frozenset((key, arxiv, title_id(title)))


def marked(place: Place) -> Marked:
    """All marks; none where there is no library yet."""
    if not library_file(place.library).exists():
        return Marked()
    with opened(place) as store:
        return marked_in(store)


def marked_in(store: Store) -> Marked:
    """All marks of an open library."""
    rows = store.rows("select is_read, is_upvoted, title_key from marks join entries on entries.id = marks.entry")
    return Marked(
        marks=read_marks(store),
        records=all_records(store),
        read_titles=frozenset(row["title_key"] for row in rows if row["is_read"]),
        upvoted_titles=frozenset(row["title_key"] for row in rows if row["is_upvoted"]),
    )
