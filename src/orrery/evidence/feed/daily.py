"""Hugging Face's daily papers, its search among papers, and its page of one: all have the same table for a paper.

Interface: https://huggingface.co/docs/hub/api (``/api/daily_papers``, ``/api/papers/search``, ``/api/papers/ID``).
"""

from datetime import date, timedelta
from typing import Any
from urllib.parse import quote, urlencode

from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.http import Document
from orrery.evidence.feed.json_values import Raw, array, count, day, names, parsed, table, text, web
from orrery.evidence.feed.question import PAGE_PAPERS, Question, Source
from orrery.evidence.feed.record import Record
from orrery.evidence.feed.text import plain, title_id, whole_arxiv_id

MAX_ENTRIES = 5000

MAX_DAYS = 92
"""Largest number of days whose lists are read in one fetch, a request each."""


def read_daily(document: bytes, source: str) -> Read:
    """Every paper of a list, or the one of a page; those without a title or an abstract are left out."""
    return _papers(document, source, "daily")


def read_paper_page(document: bytes, source: str) -> Read:
    """The paper of a page, or the hits of a search."""
    return _papers(document, source, "pages")


def _papers(document: bytes, source: str, kind: str) -> Read:
    found = parsed(document, source, "list of daily papers")
    if not isinstance(found, list) and not table(found).get("id"):
        raise FeedError(f"{source}: is no list of daily papers.")
    skipped: list[Skipped] = []
    items = array(found)[:MAX_ENTRIES] if isinstance(found, list) else [found]
    read = [r for i, item in enumerate(items, start=1) if (r := _paper(item, i, source, kind, skipped))]
    records = tuple(record for _, record in read)
    return Read(entries=tuple(entry for entry, _ in read), skipped=tuple(skipped), records=records)


def _paper(item: Any, number: int, source: str, kind: str, skipped: list[Skipped]) -> tuple[Entry, Record] | None:
    outer = table(item)
    paper = table(outer.get("paper")) or outer
    title = plain(text(paper.get("title")) or text(outer.get("title")))
    abstract = plain(text(paper.get("summary")) or text(outer.get("summary")))
    if not title or not abstract:
        missing = "title" if not title else "abstract"
        skipped.append(Skipped(where=source, why=f"paper {number} {title[:60]!r} has no {missing}."))
        return None
    found = whole_arxiv_id(text(paper.get("id")))
    entry = _entry(paper, outer, found, title, abstract, source)
    return entry, _record(entry, paper, found, kind)


def _entry(paper: Raw, outer: Raw, arxiv: str, title: str, abstract: str, source: str) -> Entry:
    authors = names(paper.get("authors"), "name")
    return Entry(
        id=arxiv or title_id(title),
        title=title,
        abstract=abstract,
        source=source,
        authors=authors,
        num_authors=len(authors),
        published=day(paper.get("publishedAt")) or day(outer.get("publishedAt")),
        updated=day(paper.get("submittedOnDailyAt")),
        organisation=_organisation(paper, outer),
        url=f"https://arxiv.org/abs/{arxiv}" if arxiv else "",
        num_votes=count(paper.get("upvotes")),
        num_comments=count(outer.get("numComments")),
    )


def _record(entry: Entry, paper: Raw, arxiv: str, kind: str) -> Record:
    page = f"https://huggingface.co/papers/{quote(arxiv)}" if arxiv else ""
    return Record(
        paper=entry.id,
        source=kind,
        url=page,
        num_votes=entry.num_votes,
        organisation=entry.organisation,
        code_url=web(paper.get("githubRepo")),
        discussion_url=page,
    )


def _organisation(paper: Raw, outer: Raw) -> str:
    """Its shown name; the short one where it has no other."""
    for organisation in (table(paper.get("organization")), table(outer.get("organization"))):
        if name := text(organisation.get("fullname")) or text(organisation.get("name")):
            return plain(name)
    return ""


def _daily_url(base: str, question: Question, page: int, today: date) -> str:
    query: dict[str, str | int] = {"limit": PAGE_PAPERS}
    if question.since:
        query = {"date": (today - timedelta(days=page)).isoformat(), **query}
    return f"{base}?{urlencode(query)}"


def _daily_pages(question: Question, today: date) -> int:
    """One list a day, from today back."""
    if question.since is None:
        return 1
    days = (today - question.since).days + 1
    if days > MAX_DAYS:
        raise FeedError(
            f"since: {question.since} is {days} days ago; daily lists go back {MAX_DAYS} days in one fetch."
        )
    return max(days, 0)


def _page_url(base: str, question: Question, page: int, today: date) -> str:
    """The page of one paper, or one search."""
    if papers := question.papers_of(page):
        return f"{base}/{quote(papers[0].id)}"
    return f"{base}/search?{urlencode({'q': question.query, 'limit': PAGE_PAPERS})}"


def _num_pages(question: Question, today: date) -> int:
    return 1 if question.query else question.num_pages_of_papers


def _read_daily(document: Document, name: str) -> Read:
    return read_daily(document.body, name)


def _read_page(document: Document, name: str) -> Read:
    return read_paper_page(document.body, name)


DAILY = Source(
    address="https://huggingface.co/api/daily_papers",
    interval_s=1.0,
    url=_daily_url,
    num_pages=_daily_pages,
    read=_read_daily,
)

PAGES = Source(
    address="https://huggingface.co/api/papers",
    interval_s=1.0,
    url=_page_url,
    num_pages=_num_pages,
    read=_read_page,
    papers_a_request=1,
    needs_arxiv=True,
)
