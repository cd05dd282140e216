"""OpenReview: the search of its second interface, for words or for the title of a paper; with venue and decision.

Interface: https://docs.openreview.net/reference/api-v2. A submission's ``venueid`` names its state where it was not
accepted: https://docs.openreview.net/how-to-guides/data-retrieval-and-modification.
"""

from datetime import date
from urllib.parse import quote, urlencode

from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.http import Document
from orrery.evidence.feed.json_values import Raw, array, count, day_of_ms, parsed, table, text
from orrery.evidence.feed.question import Question, Source
from orrery.evidence.feed.record import Record
from orrery.evidence.feed.text import plain, title_id

NAME = "openreview"

STATES = (
    ("Desk_Rejected", "desk rejected"),
    ("Rejected", "rejected"),
    ("Withdrawn", "withdrawn"),
    ("Submission", "under review"),
)
"""Beginnings of the last part of a ``venueid``, and the decisions that they name."""

MAX_NAMESAKES = 10
"""Hits that are looked through for a paper of exactly that title."""


def _url(base: str, question: Question, page: int, today: date) -> str:
    papers = question.papers_of(page)
    term, content = (papers[0].title, "title") if papers else (question.query, "all")
    offset, limit = (0, MAX_NAMESAKES) if papers else (page * question.page_papers, question.page_papers)
    query = {"term": term, "type": "terms", "content": content, "source": "forum", "limit": limit, "offset": offset}
    return f"{base}/notes/search?{urlencode(query)}"


def _num_pages(question: Question, today: date) -> int:
    return -(-question.most_papers // question.page_papers) if question.query else question.num_pages_of_papers


def read_openreview(document: bytes, source: str) -> Read:
    """The submissions among the hits of a search."""
    found = table(parsed(document, source, "answer of OpenReview"))
    entries: list[Entry] = []
    records: list[Record] = []
    skipped: list[Skipped] = []
    for number, item in enumerate(array(found.get("notes")), start=1):
        note = table(item)
        content = table(note.get("content"))
        title, abstract = plain(_value(content, "title")), plain(_value(content, "abstract"))
        forum = text(note.get("forum")) or text(note.get("id"))
        if not title or not abstract or not forum:
            missing = "title" if not title else "abstract" if not abstract else "forum"
            skipped.append(Skipped(where=source, why=f"note {number} {title[:60]!r} has no {missing}."))
            continue
        url = f"https://openreview.net/forum?id={quote(forum, safe='')}"
        entries.append(_entry(note, content, title, abstract, url, source))
        records.append(_record(content, title, url))
    total = count(found.get("count"))
    return Read(entries=tuple(entries), skipped=tuple(skipped), num_total=total, records=tuple(records))


def _entry(note: Raw, content: Raw, title: str, abstract: str, url: str, source: str) -> Entry:
    authors = tuple(name for one in array(_unwrapped(content, "authors")) if (name := plain(text(one))))
    return Entry(
        id=title_id(title),
        title=title,
        abstract=abstract,
        source=source,
        authors=authors,
        num_authors=len(authors),
        published=day_of_ms(note.get("pdate")) or day_of_ms(note.get("cdate")),
        updated=day_of_ms(note.get("mdate")),
        url=url,
    )


def _record(content: Raw, title: str, url: str) -> Record:
    state = _value(content, "venueid").rpartition("/")[2]
    decision = next((decision for begin, decision in STATES if state.startswith(begin)), "")
    venue = plain(_value(content, "venue"))
    is_open = not decision and venue.startswith("Submitted to")
    return Record(
        paper=title_id(title),
        source=NAME,
        url=url,
        discussion_url=url,
        venue=venue.removeprefix("Submitted to ") if decision or is_open else venue,
        decision=decision or ("under review" if is_open else ""),
    )


def _unwrapped(content: Raw, name: str) -> object:
    """A field of a note: ``{"value": …}`` in the second interface, bare in the first."""
    found = content.get(name)
    return table(found).get("value") if isinstance(found, dict) else found


def _value(content: Raw, name: str) -> str:
    return text(_unwrapped(content, name))


def _read(document: Document, name: str) -> Read:
    return read_openreview(document.body, name)


SOURCE = Source(
    address="https://api2.openreview.net",
    interval_s=2.0,
    url=_url,
    num_pages=_num_pages,
    read=_read,
    is_search=True,
    papers_a_request=1,
)
