"""A reader's named lists of papers, kept in the library's file."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date

from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import without_controls

MAX_LISTS, MAX_PAPERS, MAX_NAME = 200, 5000, 80
"""Limits: lists of a reader, papers of a list, letters of a name."""

NOT_IN_NAMES = ",{}\\/"
"""Signs that part names in a BibTeX file or in an address."""

TABLES = """
create table lists (name text primary key, name_key text not null unique);
create table listed (
    list text not null, entry text not null, added_on text not null, primary key (list, entry)
)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperList:
    """A list: its name, and its papers with the day on which each was added, the latest first."""

    name: str
    papers: tuple[tuple[str, date], ...] = ()

    @property
    def ids(self) -> tuple[str, ...]:
        """The papers alone."""
        return tuple(id for id, _ in self.papers)


def read_lists(store: Store) -> tuple[PaperList, ...]:
    """Every list, by name."""
    store.extend("lists", TABLES)
    papers = store.rows("select * from listed order by added_on desc, rowid desc")
    return tuple(
        PaperList(
            name=row["name"],
            papers=tuple(
                (p["entry"], date.fromisoformat(p["added_on"])) for p in papers if p["list"] == row["name_key"]
            ),
        )
        for row in store.rows("select * from lists order by name_key")
    )


def get_list(store: Store, name: str) -> PaperList:
    """The list of that name, in letters of any case. Refuses one that there is not."""
    lists = read_lists(store)
    if found := next((one for one in lists if _key(one.name) == _key(name)), None):
        return found
    known = ", ".join(one.name for one in lists) or "none yet"
    raise FeedError(f"list: there is no {name[:MAX_NAME]!r}; known: {known}.")


def make_list(store: Store, name: str) -> str:
    """Make a list; its name as it is kept. Refuses one that there is."""
    name = checked_name(name)
    with store.transaction():
        lists = read_lists(store)
        if any(_key(one.name) == _key(name) for one in lists):
            raise FeedError(f"list: there is a {name!r} already; choose another name.")
        if len(lists) >= MAX_LISTS:
            raise FeedError(f"list: {MAX_LISTS} are the most; delete one first.")
        store.execute("insert into lists values (?, ?)", (name, _key(name)))
    return name


def rename_list(store: Store, name: str, new: str) -> str:
    """Give a list another name, which is returned as it is kept."""
    new = checked_name(new)
    with store.transaction():
        old = _key(get_list(store, name).name)
        if _key(new) != old and any(_key(one.name) == _key(new) for one in read_lists(store)):
            raise FeedError(f"list: there is a {new!r} already; choose another name.")
        store.execute("update lists set name = ?, name_key = ? where name_key = ?", (new, _key(new), old))
        store.execute("update listed set list = ? where list = ?", (_key(new), old))
    return new


def delete_list(store: Store, name: str) -> None:
    """Delete a list; its papers stay in the library."""
    with store.transaction():
        key = _key(get_list(store, name).name)
        store.execute("delete from listed where list = ?", (key,))
        store.execute("delete from lists where name_key = ?", (key,))


def add_papers(store: Store, name: str, ids: Iterable[str], today: date) -> None:
    """Put papers on a list; one that is on it stays where it is."""
    with store.transaction():
        found = get_list(store, name)
        fresh = [id for id in dict.fromkeys(ids) if id not in found.ids]
        if len(found.papers) + len(fresh) > MAX_PAPERS:
            raise FeedError(f"list: {found.name!r} would have {len(found.papers) + len(fresh)}; {MAX_PAPERS} at most.")
        store.many("insert into listed values (?, ?, ?)", [(_key(name), id, today.isoformat()) for id in fresh])


def remove_papers(store: Store, name: str, ids: Iterable[str]) -> None:
    """Take papers off a list; one that is not on it is no error."""
    key = _key(get_list(store, name).name)
    store.many("delete from listed where list = ? and entry = ?", [(key, id) for id in ids])


def merge_lists(store: Store, lists: Iterable[PaperList]) -> None:
    """Add lists and their papers beside what is there; a name that is known grows."""
    with store.transaction():
        known = {_key(one.name) for one in read_lists(store)}
        for one in lists:
            if _key(one.name) not in known:
                known.add(_key(make_list(store, one.name)))
            for id, day in reversed(one.papers):
                add_papers(store, one.name, (id,), day)


def rename_listed(store: Store, old: str, new: str) -> None:
    """A paper under another id, on every list that has it."""
    store.extend("lists", TABLES)
    store.execute("update or replace listed set entry = ? where entry = ?", (new, old))


def checked_name(name: str) -> str:
    """A name as it is kept: one line, without signs that part names."""
    found = " ".join(without_controls(name[: 2 * MAX_NAME]).split())
    if not found or len(found) > MAX_NAME or set(found) & set(NOT_IN_NAMES) or found.startswith("."):
        raise FeedError(
            f"list: got {name[:MAX_NAME]!r}; write 1 to {MAX_NAME} letters, none of {' '.join(NOT_IN_NAMES)}, "
            "such as 'to read'."
        )
    return found


def _key(name: str) -> str:
    return " ".join(name.split()).casefold()
