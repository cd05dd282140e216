"""Papers by their date, and those that matter most now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from orrery.evidence.feed.entry import Entry
from orrery.evidence.feed.saved_entries import all_entries, days_by_id
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_key
from orrery.evidence.find.document import Document
from orrery.evidence.understanding.names import check_layers
from orrery.evidence.understanding.trending import keys_by_name, trending
from orrery.evidence.understanding.understand import understood
from orrery.web.papers.index import Index
from orrery.web.papers.item import Item, item_of, item_of_entry, item_of_trend
from orrery.web.papers.own import marked_in
from orrery.web.papers.period import Calendar, Cell, Period, of_document

MAX_SHOWN = 40
"""Papers of a day or a list; the search finds the others."""

MIN_SHOWN = 6
"""Papers that the first page shows at least: where the latest date has fewer, earlier dates follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dated:
    """The papers of a day, a month or a year."""

    period: Period
    items: tuple[Item, ...]
    num_all: int
    num_dayless: int  # of which only the month or the year is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Dates:
    """Contents of a page of papers by date."""

    period: Period | None  # None where no paper has a date
    sections: tuple[Dated, ...] = ()
    earlier: Period | None = None
    later: Period | None = None
    years: tuple[Period, ...] = ()
    months: tuple[Cell, ...] = ()
    days: tuple[Cell, ...] = ()


def dates(store: Store, index: Index, period: Period | None, most: int = MAX_SHOWN) -> Dates:
    """The papers of a date, at most so many; of the latest one that has papers, and of those before it, where none is
    named."""
    held = _Held(store, index.documents(), most)
    first = period or held.calendar.latest
    if first is None:
        return Dates(period=None)
    calendar, sections = held.calendar, [held.papers_of(first)]
    while period is None and sum(len(s.items) for s in sections) < MIN_SHOWN:
        before = calendar.earlier(sections[-1].period.as_("month"))
        if before is None:
            break
        sections.append(held.papers_of(before))
    return Dates(
        period=first,
        sections=tuple(sections),
        earlier=calendar.earlier(first),
        later=calendar.later(first),
        years=calendar.years(),
        months=calendar.months(first.year),
        days=calendar.days(first),
    )


class _Held:
    """Papers with a file and new papers, each once: the day of a new one is exact, so it goes before the file's."""

    def __init__(self, store: Store, documents: tuple[Document, ...], most: int) -> None:
        self._store, self._marks, self._names, self._most = store, marked_in(store), keys_by_name(documents), most
        days = days_by_id(store)
        new = {key for id, (title, _) in days.items() if (key := self._names.get(id) or self._names.get(title))}
        self._filed = tuple((p, d) for d in documents if d.key not in new and (p := of_document(d)))
        self.calendar = Calendar((*(Period.of(day) for _, day in days.values()), *(p for p, _ in self._filed)))

    def papers_of(self, period: Period) -> Dated:
        """The papers of one date, new ones first."""
        entries = all_entries(self._store, period.first, period.last)
        filed = sorted((p, d.layer, d.key, d) for p, d in self._filed if period.holds(p))
        shown = entries[: self._most]
        known = understood(self._store, shown)
        items = [item_of_entry(e, known[e.id], self._marks, self._key(e)) for e in shown]
        items += [item_of(d, self._marks) for *_, d in reversed(filed[-(self._most - len(items)) :] if filed else [])]
        num_all = len(entries) + len(filed)
        return Dated(period=period, items=tuple(items[: self._most]), num_all=num_all, num_dayless=len(filed))

    def _key(self, entry: Entry) -> str:
        return self._names.get(entry.id) or self._names.get(title_key(entry.title), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trending:
    """The papers of the last days, by what they are worth to the reader."""

    items: tuple[Item, ...]
    num_all: int
    follows: tuple[tuple[str, str], ...]  # kind and name


def trends(store: Store, index: Index, until: date, by: str, layers: Sequence[str]) -> Trending:
    """The best first."""
    check_layers(layers)
    found, marked = trending(store, until, by, layers, documents=index.documents()), marked_in(store)
    marks = marked.marks
    follows = (("layer", marks.layers), ("technique", marks.techniques), ("words", marks.words))
    return Trending(
        items=tuple(item_of_trend(trend, marked) for trend in found[:MAX_SHOWN]),
        num_all=len(found),
        follows=tuple((kind, name) for kind, names in follows for name in names),
    )
