"""Papers in the library: each once, under its arXiv id where it has one, with the latest that is known of it."""

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace
from datetime import date
from typing import Any

from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.lists import rename_listed
from orrery.evidence.feed.records import rename_records
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_key, whole_arxiv_id

_NAMES = [f.name for f in fields(Entry)]
_COLUMNS = (*_NAMES, "title_key", "first_seen_on")


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """Outcome of saving a page of papers."""

    num_new: int = 0
    num_updated: int = 0
    num_same: int = 0

    def __add__(self, other: "Saved") -> "Saved":
        return Saved(
            num_new=self.num_new + other.num_new,
            num_updated=self.num_updated + other.num_updated,
            num_same=self.num_same + other.num_same,
        )


def save_entries(store: Store, entries: Iterable[Entry], today: date) -> Saved:
    """Add what is new; put what is known of the others up to date. One transaction."""
    num = {"new": 0, "updated": 0, "same": 0}
    with store.transaction():
        for entry in entries:
            num[_save(store, entry, today)] += 1
    return Saved(num_new=num["new"], num_updated=num["updated"], num_same=num["same"])


def _save(store: Store, entry: Entry, today: date) -> str:
    known = get_entry(store, entry.id) or _namesake(store, entry)
    saved = merged(known, entry) if known else entry
    if known and known.id != saved.id:
        _rename(store, known.id, saved.id)
    if known == saved:
        outcome = "same"
    else:
        outcome = "updated" if known else "new"
        _write(store, saved, today)
    if entry.num_votes is not None or entry.num_comments is not None:
        counts = (saved.id, today.isoformat(), saved.num_votes, saved.num_comments)
        store.execute("insert or replace into counts values (?, ?, ?, ?)", counts)
    return outcome


def _namesake(store: Store, entry: Entry) -> Entry | None:
    """The same paper under its title, where one of the two has no id of its own."""
    rows = store.rows("select * from entries where title_key = ? order by id", (title_key(entry.title),))
    found = [_entry(row) for row in rows]
    if entry.id.startswith("title:"):
        return found[0] if found else None
    return next((e for e in found if e.id.startswith("title:")), None)


def merged(known: Entry, fresh: Entry) -> Entry:
    """One paper from two sources: the words of the later version, and whatever either of them says."""
    is_later = fresh.version > known.version or (fresh.version == known.version and _day(fresh) > _day(known))
    newer, older = (fresh, known) if is_later else (known, fresh)
    filled: dict[str, Any] = {name: getattr(newer, name) or getattr(older, name) for name in _NAMES}
    counts: dict[str, Any] = {
        name: getattr(known, name) if (latest := getattr(fresh, name)) is None else latest
        for name in ("num_votes", "num_comments")
    }
    name = known.id if fresh.id.startswith("title:") else fresh.id
    return replace(newer, **filled | counts | {"id": name, "source": known.source})


def _day(entry: Entry) -> date:
    return entry.updated or entry.published or date.min


def _rename(store: Store, old: str, new: str) -> None:
    """The paper under its id from now on, with what the reader and the rules made of it."""
    store.execute("update entries set id = ? where id = ?", (new, old))
    for table in ("counts", "understood", "marks"):
        store.execute(f"update or replace {table} set entry = ? where entry = ?", (new, old))
    rename_listed(store, old, new)
    rename_records(store, old, new)


def _write(store: Store, entry: Entry, today: date) -> None:
    values = [_cell(value) for value in asdict(entry).values()]
    names, marks = ", ".join(_COLUMNS), ", ".join("?" * len(_COLUMNS))
    news = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name not in ("id", "first_seen_on"))
    store.execute(
        f"insert into entries ({names}) values ({marks}) on conflict (id) do update set {news}",
        (*values, title_key(entry.title), today.isoformat()),
    )


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        return json.dumps(value, ensure_ascii=False)
    return value.isoformat() if isinstance(value, date) else value


def _entry(row: sqlite3.Row) -> Entry:
    cells = {name: row[name] for name in _NAMES}
    for name in ("authors", "categories"):
        cells[name] = tuple(json.loads(cells[name]))
    for name in ("published", "updated"):
        cells[name] = date.fromisoformat(cells[name]) if cells[name] else None
    return Entry(**cells)


def get_entry(store: Store, id: str) -> Entry | None:
    """The paper of that id; None where it is not in the library."""
    rows = store.rows("select * from entries where id = ?", (id,))
    return _entry(rows[0]) if rows else None


def find_entry(store: Store, words: str) -> Entry | None:
    """The paper that a reader means: an id in any spelling, or a title."""
    by_id = get_entry(store, whole_arxiv_id(words) or words)
    if by_id:
        return by_id
    rows = store.rows("select * from entries where title_key = ? limit 1", (title_key(words),))
    return _entry(rows[0]) if rows and title_key(words) else None


def all_entries(store: Store, since: date | None = None, until: date | None = None) -> tuple[Entry, ...]:
    """The papers of some days, the latest first; a paper without a date counts by when it was first seen."""
    rows = store.rows(
        "select * from entries where coalesce(published, first_seen_on) between ? and ? "
        "order by coalesce(published, first_seen_on) desc, id",
        ((since or date.min).isoformat(), (until or date.max).isoformat()),
    )
    return tuple(_entry(row) for row in rows)


def days_by_id(store: Store) -> dict[str, tuple[str, date]]:
    """The title, as it is compared, and the day of each paper by its id."""
    rows = store.rows("select id, title_key, coalesce(published, first_seen_on) as day from entries")
    return {row["id"]: (row["title_key"], date.fromisoformat(row["day"])) for row in rows}


def first_seen(store: Store) -> dict[str, date]:
    """The day on which each paper came into the library."""
    rows = store.rows("select id, first_seen_on from entries")
    return {row["id"]: date.fromisoformat(row["first_seen_on"]) for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Votes and comments as they stood on a day; None where nobody said."""

    seen_on: date
    num_votes: int | None
    num_comments: int | None


def counts_of(store: Store) -> dict[str, list[Count]]:
    """Votes and comments of each paper over time, oldest first."""
    found: dict[str, list[Count]] = {}
    for row in store.rows("select * from counts order by seen_on"):
        day = date.fromisoformat(row["seen_on"])
        count = Count(seen_on=day, num_votes=row["num_votes"], num_comments=row["num_comments"])
        found.setdefault(row["entry"], []).append(count)
    return found
