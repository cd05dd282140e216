"""Semantic Scholar: its search for papers, and what it knows of papers by their arXiv ids.

Interface: https://api.semanticscholar.org/api-docs/graph (``/paper/search``, ``/paper/batch``). Its one-sentence
summaries (TLDR) are not asked for: its own page, which is linked, has them.
"""

import json
from datetime import date
from typing import Any
from urllib.parse import urlencode

from orrery.evidence.feed.entry import Entry, Read, Skipped
from orrery.evidence.feed.http import Document
from orrery.evidence.feed.json_values import Raw, array, count, day, names, parsed, table, text, web
from orrery.evidence.feed.question import Question, Source
from orrery.evidence.feed.record import Record
from orrery.evidence.feed.text import plain, title_id, whole_arxiv_id

NAME = "scholar"

FIELDS = "title,abstract,authors,publicationDate,venue,externalIds,url,citationCount,influentialCitationCount"

BATCH_PAPERS = 500
"""Papers that one request may ask about."""

MAX_HITS = 1000
"""Hits that its search gives in all."""


def _url(base: str, question: Question, page: int, today: date) -> str:
    if question.papers:
        return f"{base}/paper/batch?{urlencode({'fields': FIELDS})}"
    query: dict[str, str | int] = {"query": question.query, "fieldsOfStudy": "Computer Science"}
    if question.since:
        query["publicationDateOrYear"] = f"{question.since.isoformat()}:"
    offset, limit = page * question.page_papers, question.page_papers
    return f"{base}/paper/search?{urlencode({**query, 'offset': offset, 'limit': limit, 'fields': FIELDS})}"


def _num_pages(question: Question, today: date) -> int:
    if not question.query:
        return question.num_pages_of_papers
    return -(-min(question.most_papers, MAX_HITS) // question.page_papers)


def _body(question: Question, page: int) -> bytes:
    papers = question.papers_of(page)
    return json.dumps({"ids": [f"ARXIV:{p.id}" for p in papers]}).encode() if papers else b""


def read_scholar(document: bytes, source: str) -> Read:
    """The hits of a search, or the papers that were asked about."""
    found = parsed(document, source, "answer of Semantic Scholar")
    items = array(found) or array(table(found).get("data"))
    entries: list[Entry] = []
    records: list[Record] = []
    skipped: list[Skipped] = []
    for number, item in enumerate(items, start=1):
        if not (paper := table(item)):  # one that it does not know
            continue
        title, abstract = plain(text(paper.get("title"))), plain(text(paper.get("abstract")))
        if not title:
            skipped.append(Skipped(where=source, why=f"paper {number} has no title."))
            continue
        arxiv = whole_arxiv_id(text(table(paper.get("externalIds")).get("ArXiv")))
        records.append(_record(paper, arxiv or title_id(title)))
        if abstract:
            entries.append(_entry(paper, arxiv, title, abstract, source))
        else:
            skipped.append(Skipped(where=source, why=f"paper {number} {title[:60]!r} has no abstract."))
    total = count(table(found).get("total"))
    return Read(entries=tuple(entries), skipped=tuple(skipped), num_total=total, records=tuple(records))


def _entry(paper: Raw, arxiv: str, title: str, abstract: str, source: str) -> Entry:
    authors = names(paper.get("authors"), "name")
    return Entry(
        id=arxiv or title_id(title),
        title=title,
        abstract=abstract,
        source=source,
        authors=authors,
        num_authors=len(authors),
        published=day(paper.get("publicationDate")),
        url=f"https://arxiv.org/abs/{arxiv}" if arxiv else web(paper.get("url")),
    )


def _record(paper: Raw, id: str) -> Record:
    return Record(
        paper=id,
        source=NAME,
        url=web(paper.get("url")),
        num_citations=count(paper.get("citationCount")),
        num_influential_citations=count(paper.get("influentialCitationCount")),
        venue=_venue(paper.get("venue")),
    )


def _venue(value: Any) -> str:
    """Where it appeared; an archive is no venue."""
    found = plain(text(value))
    return "" if found.lower().startswith("arxiv") else found


def _read(document: Document, name: str) -> Read:
    return read_scholar(document.body, name)


SOURCE = Source(
    address="https://api.semanticscholar.org/graph/v1",
    interval_s=3.0,  # without a key, all users share 100 requests in 5 minutes
    url=_url,
    num_pages=_num_pages,
    read=_read,
    body=_body,
    is_search=True,
    papers_a_request=BATCH_PAPERS,
    needs_arxiv=True,
)
