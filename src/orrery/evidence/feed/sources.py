"""Where new papers are listed, and the addresses that list them, page by page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import quote, urlencode

from orrery.base.errors import UnknownName
from orrery.evidence.feed.atom import read_atom
from orrery.evidence.feed.daily import read_daily
from orrery.evidence.feed.entry import Read
from orrery.evidence.feed.extra import FeedError
from orrery.evidence.feed.http import Document

BASES = {
    "arxiv": "https://export.arxiv.org/api/query",
    "rss": "https://rss.arxiv.org/atom",
    "daily": "https://huggingface.co/api/daily_papers",
}
"""Name -> address; a mirror may stand in for it."""

INTERVALS_S = {"arxiv": 3.0, "rss": 3.0, "daily": 1.0}
"""Between two requests. arXiv asks for one in three seconds: https://info.arxiv.org/help/api/tou.html."""

CATEGORIES = ("cs.DC", "cs.AR", "cs.PF")
"""Default arXiv categories: distributed computing, architecture, performance."""

PAGE_PAPERS = 100
MAX_DAYS = 92
"""Largest number of days whose lists are read in one fetch, a request each."""

FIELDS = ("ti:", "au:", "abs:", "co:", "jr:", "cat:", "rn:", "all:")
"""Field prefixes of arXiv's own search language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A query to a source."""

    source: str
    query: str = ""
    categories: tuple[str, ...] = ()
    since: date | None = None
    most_papers: int = 200
    base: str = ""  # address in place of the source's own
    page_papers: int = PAGE_PAPERS

    @property
    def key(self) -> str:
        """Key shared by two fetches of which one continues the other."""
        since = self.since.isoformat() if self.since else ""
        return "|".join((self.source, self.base, self.query, "+".join(self.categories), since))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Interface of a source: its requests, and the reading of its answers."""

    url: Callable[[Question, int, date], str]  # of a page, counted from 0
    num_pages: Callable[[Question, date], int]
    read: Callable[[Document, str], Read]


def source_of(question: Question) -> Source:
    """The source that a question is for."""
    if question.source not in _SOURCES:
        raise UnknownName("source", question.source, _SOURCES)
    return _SOURCES[question.source]


def _arxiv_url(question: Question, page: int, today: date) -> str:
    query = {
        "search_query": _search(question, today),
        "start": page * question.page_papers,
        "max_results": question.page_papers,
        "sortBy": "submittedDate",
        "sortOrder": "descending",
    }
    return f"{_base(question)}?{urlencode(query)}"


def id_url(ids: Sequence[str], base: str = "") -> str:
    """The address of some papers by their arXiv ids."""
    return f"{base or BASES['arxiv']}?{urlencode({'id_list': ','.join(ids), 'max_results': len(ids)})}"


def _search(question: Question, today: date) -> str:
    """Any of the categories, and the words, and the days, in arXiv's search language."""
    categories = question.categories or (() if question.query else CATEGORIES)
    parts = [f"({' OR '.join(f'cat:{c}' for c in categories)})"] if categories else []
    if words := " ".join(question.query.split()):
        is_written = any(field in words for field in FIELDS)
        parts.append(f"({words})" if is_written else " AND ".join(f"all:{word}" for word in _words(words)))
    if question.since:
        parts.append(f"submittedDate:[{question.since:%Y%m%d}0000 TO {today + timedelta(days=1):%Y%m%d}2359]")
    return " AND ".join(parts)


def _words(text: str) -> list[str]:
    """Words, and phrases that stand in quotes."""
    pieces = text.split('"')
    found: list[str] = []
    for i, piece in enumerate(pieces):
        if i % 2 and i < len(pieces) - 1:
            found += [f'"{piece.strip()}"'] if piece.strip() else []
        else:
            found += piece.split()
    return found


def _rss_url(question: Question, page: int, today: date) -> str:
    return f"{_base(question)}/{quote('+'.join(question.categories or CATEGORIES), safe='+.-')}"


def _daily_url(question: Question, page: int, today: date) -> str:
    query: dict[str, str | int] = {"limit": PAGE_PAPERS}
    if question.since:
        query = {"date": (today - timedelta(days=page)).isoformat(), **query}
    return f"{_base(question)}?{urlencode(query)}"


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


def _base(question: Question) -> str:
    return (question.base or BASES[question.source]).rstrip("/")


_SOURCES = {
    "arxiv": Source(
        url=_arxiv_url,
        read=lambda document, name: read_atom(document.body, name, document.content_type),
        num_pages=lambda question, today: -(-question.most_papers // question.page_papers),
    ),
    "rss": Source(
        url=_rss_url,
        read=lambda document, name: read_atom(document.body, name, document.content_type),
        num_pages=lambda question, today: 1,
    ),
    "daily": Source(
        url=_daily_url, read=lambda document, name: read_daily(document.body, name), num_pages=_daily_pages
    ),
}
