"""arXiv's search, and its lists of the day."""

from collections.abc import Sequence
from datetime import date, timedelta
from urllib.parse import quote, urlencode

from orrery.evidence.feed.atom import read_atom
from orrery.evidence.feed.entry import Read
from orrery.evidence.feed.http import Document
from orrery.evidence.feed.question import Question, Source

CATEGORIES = ("cs.DC", "cs.AR", "cs.PF")
"""Default categories: distributed computing, architecture, performance."""

FIELDS = ("ti:", "au:", "abs:", "co:", "jr:", "cat:", "rn:", "all:")
"""Field prefixes of arXiv's own search language."""

INTERVAL_S = 3.0
"""It asks for one request in three seconds: https://info.arxiv.org/help/api/tou.html."""


def _search_url(base: str, question: Question, page: int, today: date) -> str:
    query = {
        "search_query": _search(question, today),
        "start": page * question.page_papers,
        "max_results": question.page_papers,
        "sortBy": "submittedDate",
        "sortOrder": "descending",
    }
    return f"{base}?{urlencode(query)}"


def id_url(ids: Sequence[str], base: str = "") -> str:
    """The address of some papers by their arXiv ids."""
    return f"{base or SEARCH.address}?{urlencode({'id_list': ','.join(ids), 'max_results': len(ids)})}"


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


def _list_url(base: str, question: Question, page: int, today: date) -> str:
    return f"{base}/{quote('+'.join(question.categories or CATEGORIES), safe='+.-')}"


def _read(document: Document, name: str) -> Read:
    return read_atom(document.body, name, document.content_type)


SEARCH = Source(
    address="https://export.arxiv.org/api/query",
    interval_s=INTERVAL_S,
    url=_search_url,
    num_pages=lambda question, today: -(-question.most_papers // question.page_papers),
    read=_read,
    is_search=True,
    is_latest_first=True,
)

LIST = Source(
    address="https://rss.arxiv.org/atom",
    interval_s=INTERVAL_S,
    url=_list_url,
    num_pages=lambda question, today: 1,
    read=_read,
)
