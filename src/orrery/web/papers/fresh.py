"""New papers: those of a day, with the days beside it, and those that matter most now."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from orrery.evidence.feed.saved_entries import all_entries, num_by_day
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_key
from orrery.evidence.understanding.names import check_layers
from orrery.evidence.understanding.trending import files_by_name, trending
from orrery.evidence.understanding.understand import understood
from orrery.web.papers.item import Item, item_of_entry, item_of_trend
from orrery.web.papers.own import marked_in

MAX_SHOWN = 40
"""Papers of a day or a list; the search finds the others."""

NEAR_DAYS = 15
"""Days with papers that are listed beside the one that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The papers of one day."""

    day: date | None  # None where the library has no papers yet
    items: tuple[Item, ...] = ()
    num_all: int = 0
    earlier: date | None = None
    later: date | None = None
    days: tuple[tuple[date, int], ...] = ()  # around it, the latest first


def papers_of(store: Store, day: date | None) -> Day:
    """The papers of a day; of the latest one where none is named."""
    counts = num_by_day(store)
    day = day or next(iter(counts), None)
    if day is None:
        return Day(day=None)
    entries = all_entries(store, day, day)
    shown = entries[:MAX_SHOWN]
    classification, marks, filed = understood(store, shown), marked_in(store), files_by_name()
    items = tuple(
        item_of_entry(e, classification[e.id], marks, filed.get(e.id) or filed.get(title_key(e.title), ""))
        for e in shown
    )
    return Day(
        day=day, items=items, num_all=len(entries), earlier=max((d for d in counts if d < day), default=None),
        later=min((d for d in counts if d > day), default=None), days=_near(list(counts.items()), day),
    )  # fmt: skip


def _near(counts: Sequence[tuple[date, int]], day: date) -> tuple[tuple[date, int], ...]:
    """The days about one, the latest first."""
    place = next((i for i, (d, _) in enumerate(counts) if d <= day), len(counts))
    start = max(0, min(place - NEAR_DAYS // 2, len(counts) - NEAR_DAYS))
    return tuple(counts[start : start + NEAR_DAYS])


@dataclass(frozen=True, slots=True, kw_only=True)
class Trending:
    """The papers of the last days, by what they are worth to the reader."""

    items: tuple[Item, ...]
    num_all: int
    follows: tuple[tuple[str, str], ...]  # kind and name


def trends(store: Store, until: date, by: str, layers: Sequence[str]) -> Trending:
    """The best first."""
    check_layers(layers)
    found, marked = trending(store, until, by, layers), marked_in(store)
    marks = marked.marks
    follows = (("layer", marks.layers), ("technique", marks.techniques), ("words", marks.words))
    return Trending(
        items=tuple(item_of_trend(trend, marked) for trend in found[:MAX_SHOWN]), num_all=len(found),
        follows=tuple((kind, name) for kind, names in follows for name in names),
    )  # fmt: skip
