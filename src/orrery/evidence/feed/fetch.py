"""Fetching: page after page of a list into the library, a transaction each, so that a broken fetch goes on later."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date

from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.http import Document, Reader
from orrery.evidence.feed.saved_entries import Saved, save_entries
from orrery.evidence.feed.sources import Question, Source, id_url, source_of
from orrery.evidence.feed.store import Store

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
    went_on_from: int = 0  # page at which an earlier fetch had stopped
    is_complete: bool = True


@dataclass(kw_only=True)
class _Running:
    """A fetch under way."""

    saved: Saved = field(default_factory=Saved)
    skipped: list[Skipped] = field(default_factory=list[Skipped])
    entries: dict[str, Entry] = field(default_factory=dict[str, Entry])
    num_pages: int = 0
    num_unchanged: int = 0


def fetch(
    store: Store,
    reader: Reader,
    question: Question,
    today: date,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    now_s: Callable[[], float] = time.time,
) -> Fetched:
    """Every page of a list, from where an earlier fetch of the same question stopped. Failures are said, not raised."""
    source = source_of(question)
    num_pages, first = source.num_pages(question, today), _next_page(store, question, now_s())
    run, page, is_complete = _Running(), first, True
    while page < num_pages:
        on_progress(page, num_pages)
        url = source.url(question, page, today)
        try:
            document = reader.get(url, *_validators(store, url))
        except FeedError as error:
            run.skipped.append(Skipped(where=question.source, why=str(error)))
            is_complete = False
            break
        found = _read(source, document, question, page)
        read = _limited(found, question, len(run.entries))
        if read != found or read.skipped:  # there is more in it than was kept: it is to be sent again
            document = replace(document, etag="", last_modified="")
        is_last = not document.is_unchanged and _ends(read, len(found.entries), question, page, len(run.entries))
        page += 1
        with store.transaction():
            _keep(store, run, read, document, today, now_s())
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
        went_on_from=first,
        is_complete=is_complete,
    )


def fetch_ids(store: Store, reader: Reader, ids: tuple[str, ...], today: date, base: str = "") -> Fetched:
    """Papers by their arXiv ids."""
    document = reader.get(id_url(ids, base))
    question = Question(source="arxiv", base=base)
    read = source_of(question).read(document, "arXiv")
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


def _limited(read: Read, question: Question, num_before: int) -> Read:
    """Not more than was asked for, and nothing older."""
    since = question.since if question.source == "arxiv" else None  # the others list by day
    saved = [e for e in read.entries if not _is_older(e, since)]
    return replace(read, entries=tuple(saved[: max(0, question.most_papers - num_before)]))


def _is_older(entry: Entry, since: date | None) -> bool:
    """Neither written nor changed since."""
    days = [day for day in (entry.published, entry.updated) if day]
    return bool(since and days and max(days) < since)


def _ends(read: Read, num_found: int, question: Question, page: int, num_before: int) -> bool:
    """Whether a list has nothing more to give: a search by its hits and its order, others by what was asked for."""
    if num_before + len(read.entries) >= question.most_papers:
        return True
    if question.source != "arxiv":
        return False
    end = (page + 1) * question.page_papers
    is_past = len(read.entries) < num_found  # the latest come first
    is_empty = num_found == 0 and not read.skipped
    return is_past or is_empty or (read.num_total is not None and end >= read.num_total)


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
    if document and not document.is_unchanged:
        row = (document.url, document.etag, document.last_modified, now_s)
        store.execute("insert or replace into documents values (?, ?, ?, ?)", row)
    run.skipped += read.skipped
    run.num_pages += 1
    run.num_unchanged += bool(document and document.is_unchanged)


def _validators(store: Store, url: str) -> tuple[str, str]:
    rows = store.rows("select etag, last_modified from documents where url = ?", (url,))
    return (rows[0]["etag"], rows[0]["last_modified"]) if rows else ("", "")


def _next_page(store: Store, question: Question, now_s: float) -> int:
    """Where a broken fetch stopped; 0 where there is none, or none of today."""
    rows = store.rows("select * from fetches where question = ? and not is_done", (question.key,))
    return int(rows[0]["next_page"]) if rows and abs(now_s - rows[0]["begun_at_s"]) < GOES_ON_S else 0


def _set_next_page(store: Store, question: Question, page: int, now_s: float, *, is_done: bool) -> None:
    begun = store.rows("select begun_at_s from fetches where question = ?", (question.key,)) if page > 1 else []
    begun_at_s = begun[0]["begun_at_s"] if begun else now_s
    store.execute("insert or replace into fetches values (?, ?, ?, ?)", (question.key, page, begun_at_s, int(is_done)))
