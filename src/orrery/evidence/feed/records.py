"""The records of papers in the library's file: one a paper and source, with the day on which the source was asked."""

import json
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date, timedelta

from orrery.evidence.feed.record import Known, Record
from orrery.evidence.feed.store import Store

FRESH_DAYS = 7
"""A source is asked about a paper again after so many days."""

TABLES = """
create table records (
    paper text not null, source text not null, seen_on text not null, body text not null, primary key (paper, source)
)
"""

_KEPT = "on conflict (paper, source) do update set seen_on = excluded.seen_on"


def save_records(store: Store, records: Iterable[Record], today: date) -> None:
    """Put what the sources say now in place of what they said before."""
    store.extend("records", TABLES)
    rows = [(r.paper, r.source, today.isoformat(), _body(r)) for r in records]
    store.many(f"insert into records values (?, ?, ?, ?) {_KEPT}, body = excluded.body", rows)


def note_asked(store: Store, source: str, papers: Iterable[Known], today: date) -> None:
    """Remember that a source was asked, whether or not it knows the papers; what it said before stays."""
    store.extend("records", TABLES)
    rows = [(p.id, source, today.isoformat()) for p in papers]
    store.many(f"insert into records values (?, ?, ?, '{{}}') {_KEPT}", rows)


def not_asked(store: Store, source: str, papers: Iterable[Known], today: date) -> tuple[Known, ...]:
    """The papers that a source was not asked about in the last days."""
    store.extend("records", TABLES)
    since = (today - timedelta(days=FRESH_DAYS)).isoformat()
    rows = store.rows("select paper from records where source = ? and seen_on > ?", (source, since))
    seen = {row["paper"] for row in rows}
    return tuple(p for p in papers if p.id not in seen)


def all_records(store: Store) -> dict[str, tuple[Record, ...]]:
    """Records of each paper, by its id."""
    store.extend("records", TABLES)
    found: dict[str, tuple[Record, ...]] = {}
    for row in store.rows("select paper, source, body from records where body != '{}' order by paper, source"):
        record = Record(paper=row["paper"], source=row["source"], **json.loads(row["body"]))
        found[record.paper] = (*found.get(record.paper, ()), record)
    return found


def rename_records(store: Store, old: str, new: str) -> None:
    """A paper's records under another id."""
    store.extend("records", TABLES)
    store.execute("update or replace records set paper = ? where paper = ?", (new, old))


def _body(record: Record) -> str:
    found = {k: v for k, v in asdict(record).items() if k not in ("paper", "source") and v not in (None, "")}
    return json.dumps(found, ensure_ascii=False)
