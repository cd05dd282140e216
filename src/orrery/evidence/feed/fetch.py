"""Fetching: page after page of a list into the library, a transaction each, so that a broken fetch goes on later."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date

from orrery.evidence.feed.arxiv import id_url
from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.http import Document, NotThere, Reader
from orrery.evidence.feed.question import Question, Source
from orrery.evidence.feed.record import Known, Record
from orrery.evidence.feed.records import note_asked, save_records
from orrery.evidence.feed.saved_entries import Saved, find_entry, get_entry, save_entries
from orrery.evidence.feed.sources import source_named, url_of
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_key

GOES_ON_S = 24 * 3600.0
"""A fetch that broke off longer ago starts again: its list has moved on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """Result of a fetch."""

    saved: Saved
    skipped: tuple[Skipped, ...] = ()
    entries: tuple[Entry, ...] = ()
    num_pages: int = 0
    num_unchanged: int = 0  # pages of which the server said that they are as they were
    num_records: int = 0  # papers of which the source says more than their own words
    num_asked: int = 0  # known papers that the source was asked about
    went_on_from: int = 0  # page at which an earlier fetch had stopped
    is_complete: bool = True
    is_list: bool = True  # else answers on papers that were known before


@dataclass(kw_only=True)
class _Running:
    """A fetch under way."""

    saved: Saved = field(default_factory=Saved)
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    num_pages: int = 0
    num_unchanged: int = 0
    num_records: int = 0
    num_asked: int = 0


def fetch(
    store: Store,
    reader: Reader,
    question: Question,
    today: date,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    now_s: Callable[[], float] = time.time,
) -> Fetched:
    """Every page of a list, from where an earlier fetch of the same question stopped. Failures are said, not raised."""
    source = source_named(question.source)
    num_pages, first = source.num_pages(question, today), _next_page(store, question, now_s())
    run, page, is_complete = _Running(), first, True
    while page < num_pages:
        on_progress(page, num_pages)
        try:
            document = _asked(store, reader, source, question, page, today)
        except FeedError as error:
            run.skipped.append(Skipped(where=question.source, why=str(error)))
            is_complete = False
            break
        found = _read(source, document, question, page)
        read = _limited(store, source, found, question, page, len(run.entries))
        if read.skipped or (read != found and not question.papers):  # more than was kept: it is to be sent again
            document = replace(document, etag="", last_modified="")
        is_last = not document.is_unchanged and _ends(source, read, found, question, page, len(run.entries))
        page += 1
        with store.transaction():
            _keep(store, run, read, document, today, now_s())
            _note(store, run, question, page - 1, today)
            _set_next_page(store, question, page, now_s(), is_done=is_last or page >= num_pages)
        if is_last:
            break
    on_progress(num_pages, num_pages)
    return Fetched(
        saved=run.saved,
        skipped=tuple(run.skipped),
        entries=tuple(run.entries.values()),
        num_pages=run.num_pages,
        num_unchanged=run.num_unchanged,
        num_records=run.num_records,
        num_asked=run.num_asked,
        went_on_from=first,
        is_complete=is_complete,
        is_list=bool(question.query) or not source.papers_a_request,
    )


def _asked(store: Store, reader: Reader, source: Source, question: Question, page: int, today: date) -> Document:
    """A page of the answer; an empty one where the source does not know the one paper that it was asked about."""
    url, body = url_of(question, page, today), source.body(question, page)
    try:
        return reader.get(url, body=body) if body else reader.get(url, *_validators(store, url))
    except NotThere:
        if not question.papers:
            raise
        return Document(url="", body=b"[]")


def fetch_ids(store: Store, reader: Reader, ids: tuple[str, ...], today: date, base: str = "") -> Fetched:
    """Papers by their arXiv ids."""
    document = reader.get(id_url(ids, base))
    question = Question(source="arxiv", base=base)
    read = source_named(question.source).read(document, "arXiv")
    found = {entry.id for entry in read.entries}
    missing = [Skipped(where="arXiv", why=f"there is no paper {id}.") for id in ids if id not in found]
    saved = save_entries(store, read.entries, today)
    return Fetched(saved=saved, skipped=(*read.skipped, *missing), entries=read.entries, num_pages=1)


def keep_read(store: Store, read: Read, today: date) -> Fetched:
    """The papers of a document that is at hand."""
    run = _Running()
    _keep(store, run, read, None, today, 0.0)
    return Fetched(
        saved=run.saved, skipped=tuple(run.skipped), entries=tuple(run.entries.values()), num_pages=run.num_pages
    )


def _name(question: Question, page: int) -> str:
    return question.source if page == 0 else f"{question.source}, page {page + 1}"


def _read(source: Source, document: Document, question: Question, page: int) -> Read:
    """Entries of a page; an unreadable one gives none, and the reason."""
    if document.is_unchanged:
        return Read(entries=())
    try:
        return source.read(document, _name(question, page))
    except FeedError as error:
        return Read(entries=(), skipped=(Skipped(where=_name(question, page), why=str(error)),))


def _limited(store: Store, source: Source, read: Read, question: Question, page: int, num_before: int) -> Read:
    """Not more than was asked for, and nothing older; of known papers only those that were asked about."""
    if question.papers:
        return _of_known(store, read, question.papers_of(page))
    since = question.since if source.is_search else None  # the others list by day
    saved = [e for e in read.entries if not _is_older(e, since)][: max(0, question.most_papers - num_before)]
    ids = {e.id for e in saved}
    return replace(read, entries=tuple(saved), records=tuple(r for r in read.records if r.paper in ids))


def _of_known(store: Store, read: Read, papers: tuple[Known, ...]) -> Read:
    """Entries and records of the papers that were asked about, under the ids by which they are known here."""
    ids = {name: p.id for p in papers for name in (p.id, title_key(p.title)) if name}
    titles = {e.id: title_key(e.title) for e in read.entries}
    known = {id: ids.get(id) or ids.get(titles.get(id, "")) for id in (*titles, *(r.paper for r in read.records))}
    entries = [replace(e, id=id) for e in read.entries if (id := known[e.id]) and get_entry(store, id)]
    records = {id: replace(r, paper=id) for r in reversed(read.records) if (id := known[r.paper])}
    return Read(entries=tuple({e.id: e for e in entries}.values()), records=tuple(records.values()))


def _is_older(entry: Entry, since: date | None) -> bool:
    """Neither written nor changed since."""
    days = [day for day in (entry.published, entry.updated) if day]
    return bool(since and days and max(days) < since)


def _ends(source: Source, read: Read, found: Read, question: Question, page: int, num_before: int) -> bool:
    """Whether a list has nothing more to give: a search by its hits and its order, others by what was asked for."""
    if question.papers:
        return False
    if num_before + len(read.entries) >= question.most_papers:
        return True
    if not source.is_search:
        return False
    end = (page + 1) * question.page_papers
    is_past = source.is_latest_first and len(read.entries) < len(found.entries)
    is_empty = not found.entries and not read.skipped
    return is_past or is_empty or (read.num_total is not None and end >= read.num_total)


def _note(store: Store, run: _Running, question: Question, page: int, today: date) -> None:
    """The papers of a page have been asked about, whether or not the source knows them."""
    papers = question.papers_of(page)
    note_asked(store, question.source, papers, today)
    run.num_asked += len(papers)


def _keep(store: Store, run: _Running, read: Read, document: Document | None, today: date, now_s: float) -> None:
    """A page into the library, and with it how to ask for it the next time."""
    entries: list[Entry] = []
    for entry in read.entries:
        if entry.id in run.entries:
            run.skipped.append(Skipped(where=entry.source, why=f"{entry.id} stands there twice."))
            if run.entries[entry.id].version >= entry.version:
                continue
        run.entries[entry.id] = entry
        entries.append(entry)
    run.saved += save_entries(store, entries, today)
    save_records(store, _renamed(store, read), today)
    run.num_records += len(read.records)
    if document and document.url and not document.is_unchanged:
        row = (document.url, document.etag, document.last_modified, now_s)
        store.execute("insert or replace into documents values (?, ?, ?, ?)", row)
    run.skipped += read.skipped
    run.num_pages += 1
    run.num_unchanged += bool(document and document.is_unchanged)


def _renamed(store: Store, read: Read) -> list[Record]:
    """Records under the ids that their papers have in the library, which may have known them by another source."""
    titles = {e.id: e.title for e in read.entries}
    saved = {
        id: found.id for id, title in titles.items() if (found := get_entry(store, id) or find_entry(store, title))
    }
    return [replace(r, paper=saved.get(r.paper, r.paper)) for r in read.records]


def _validators(store: Store, url: str) -> tuple[str, str]:
    rows = store.rows("select etag, last_modified from documents where url = ?", (url,))
    return (rows[0]["etag"], rows[0]["last_modified"]) if rows else ("", "")


def _next_page(store: Store, question: Question, now_s: float) -> int:
    """Where a broken fetch stopped; 0 where there is none, or none of today."""
    if question.papers:  # those that are left are another question
        return 0
    rows = store.rows("select * from fetches where question = ? and not is_done", (question.key,))
    return int(rows[0]["next_page"]) if rows and abs(now_s - rows[0]["begun_at_s"]) < GOES_ON_S else 0


def _set_next_page(store: Store, question: Question, page: int, now_s: float, *, is_done: bool) -> None:
    if question.papers:
        return
    begun = store.rows("select begun_at_s from fetches where question = ?", (question.key,)) if page > 1 else []
    begun_at_s = begun[0]["begun_at_s"] if begun else now_s
    store.execute("insert or replace into fetches values (?, ?, ?, ?)", (question.key, page, begun_at_s, int(is_done)))
