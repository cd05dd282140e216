"""The library as a list: everything that passes the filters, or the best for a query, a page at a time."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache

from orrery.evidence.find.document import Document
from orrery.evidence.find.filters import VERDICTS, Filters, select
from orrery.web.address import Query
from orrery.web.papers.index import MAX_QUERY, Index
from orrery.web.papers.item import Item, item_of, item_of_hit, verdicts
from orrery.web.papers.messages import describe
from orrery.web.papers.own import Marked

PAGE_ITEMS = 25
MAX_HITS = 200
"""Papers of one search; what comes after has little to do with it."""

MAX_FILTER, MAX_PAGE = 120, 10_000
FILTERS = tuple(f.name for f in fields(Filters))


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperQuery:
    """Query of a list, as it was typed."""

    query: str = ""
    filters: Filters = field(default_factory=Filters)
    has_new: bool = False
    page: int = 1

    @staticmethod
    def of(query: Query, has_new: bool = False) -> "PaperQuery":
        """From an address."""
        words = {name: query.get(name, "").strip()[:MAX_FILTER] for name in FILTERS}
        page = query.get("page", "1")
        return PaperQuery(
            query=" ".join(query.get("q", "").split())[:MAX_QUERY],
            filters=Filters(**words),
            has_new={"new": True, "library": False}.get(query.get("among", ""), has_new),
            page=min(max(1, int(page)), MAX_PAGE) if page.isdecimal() and len(page) < 6 else 1,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of papers."""

    items: tuple[Item, ...] = ()
    num_found: int = 0
    num_all: int = 0
    num_pages: int = 1
    read_as: Mapping[str, str] = field(default_factory=dict[str, str])
    conditions: tuple[str, ...] = ()


def listing(index: Index, query: PaperQuery, marked: Marked) -> Listing:
    """The papers of a query. Raises where no paper carries a filter's word, or the query is empty."""
    every = index.documents(query.has_new)
    start = (query.page - 1) * PAGE_ITEMS
    part, conditions = slice(start, start + PAGE_ITEMS), ()
    if query.query:
        found = index.search(query.query, query.filters, has_new=query.has_new, limit=MAX_HITS)
        items = tuple(item_of_hit(hit, marked) for hit in found.hits[part])
        conditions = tuple(describe(condition, 200) for condition in found.conditions)
        num, read_as = len(found.hits), {describe(a, 60): describe(b, 60) for a, b in found.read_as.items()}
    else:
        shown = sorted(select(every, query.filters), key=_latest)
        items, num, read_as = tuple(item_of(d, marked) for d in shown[part]), len(shown), {}
    return Listing(
        items=items,
        num_found=num,
        num_all=len(every),
        num_pages=max(1, -(-num // PAGE_ITEMS)),
        read_as=read_as,
        conditions=conditions,
    )


def _latest(document: Document) -> tuple[int, str, str]:
    return -(document.year or 0), document.layer, document.key


NONE = (("reproduced", 0), ("not reproduced", 0))
"""Verdicts of a paper that has none."""


def rows(index: Index, query: PaperQuery) -> list[dict[str, str | int | None]]:
    """All that is asked for, as plain data."""
    if query.query:
        hits = index.search(query.query, query.filters, has_new=query.has_new, limit=MAX_HITS).hits
        documents = [hit.document for hit in hits]
    else:
        documents = sorted(select(index.documents(query.has_new), query.filters), key=_latest)
    return [
        {
            "key": d.key,
            "title": d.title,
            "year": d.year,
            "layer": d.layer,
            "kind": d.kind,
            "fit": d.fit,
            "url": d.url,
            **{f"num_{word.replace(' ', '_')}": num for word, num in (*NONE, *verdicts(d.key))},
        }
        for d in documents
    ]


def choices(index: Index) -> dict[str, tuple[str, ...]]:
    """Values of each filter."""
    return _choices(index.documents())


@lru_cache(maxsize=2)
def _choices(documents: tuple[Document, ...]) -> dict[str, tuple[str, ...]]:

    def names(*found: str) -> tuple[str, ...]:
        return tuple(sorted({describe(name, 80) for name in found if name}))

    return {
        "layer": names(*(d.layer for d in documents)),
        "kind": names(*(d.kind for d in documents)),
        "fit": names(*(d.fit for d in documents)),
        "verdict": VERDICTS,
        "device": names(*(name for d in documents for name in d.devices)),
        "technique": names(*(name for d in documents for name in d.techniques)),
        "metric": names(*(name for d in documents for name in d.metrics)),
    }
