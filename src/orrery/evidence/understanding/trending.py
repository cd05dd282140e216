"""New papers ranked by their value to a reader, with reasons.

    score = recency + velocity + 1.5 x interest - 4 (if read: after all others)

recency   2^(-age / half-life); the half-life is half of the days that are looked at
velocity  v / (v + 5), v = votes and comments a day; 0 where nobody counts them
interest  the most of: chance of a followed layer, chance of a followed technique, likeness (cosine of topics) to
          followed words or to a paper that the reader upvoted

Every part stands beside the score with a line that says where it comes from.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache

from orrery.evidence.feed.entry import Classification, Entry
from orrery.evidence.feed.marks import Marks, read_marks
from orrery.evidence.feed.saved_entries import Count, all_entries, counts_of, first_seen
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_key
from orrery.evidence.find.document import Document
from orrery.evidence.find.library_cache import library
from orrery.evidence.understanding.interests import Interests
from orrery.evidence.understanding.understand import understood

DAYS = {"day": 1, "week": 7, "month": 31}
"""Days covered by each list."""

HALF_FULL_PER_DAY = 5.0
"""Votes and comments a day that count half of what any number can."""

INTEREST_WEIGHT, READ_WEIGHT = 1.5, 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorePart:
    """One term of a score."""

    name: str
    value: float
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A paper with its score, unfolded."""

    entry: Entry
    understood: Classification
    parts: tuple[ScorePart, ...]
    is_read: bool
    is_upvoted: bool
    library_key: str  # of its paper file; empty where nobody has written one

    @property
    def score(self) -> float:
        """The parts together."""
        return sum(part.value for part in self.parts)


def trending(
    store: Store,
    until: date,
    by: str = "week",
    layers: Sequence[str] = (),
    on_progress: Callable[[int, int], None] = lambda done, total: None,
    documents: tuple[Document, ...] | None = None,
) -> list[Trend]:
    """The papers of the days up to ``until``, published, changed or new to the library in them; the best first.

    ``documents`` are the papers with a file, where they are known; else they are read.
    """
    since = until - timedelta(days=DAYS[by] - 1)
    seen, marks = first_seen(store), read_marks(store)
    listed = [e for e in all_entries(store) if any(since <= d <= until for d in (*_days(e), seen[e.id]))]
    classifications = understood(store, listed, on_progress)
    listed = [e for e in listed if not layers or classifications[e.id].layer in layers]
    filed, counts = keys_by_name(library() if documents is None else documents), counts_of(store)
    interests = Interests(store, marks, listed, classifications)
    found = [
        Trend(
            entry=e,
            understood=classifications[e.id],
            is_read=e.id in marks.read,
            is_upvoted=e.id in marks.upvoted,
            library_key=filed.get(e.id) or filed.get(title_key(e.title), ""),
            parts=(
                _recency(e, seen[e.id], until, DAYS[by] / 2.0),
                _velocity(e, counts.get(e.id, []), until),
                _interest(*interests.strongest(i)),
                *_read(e, marks),
            ),
        )
        for i, e in enumerate(listed)
    ]
    return sorted(found, key=lambda t: (-t.score, t.entry.id))


def files_by_name() -> dict[str, str]:
    """Keys of paper files by arXiv id and by title, read from the library now."""
    return keys_by_name(library())


@lru_cache(maxsize=2)
def keys_by_name(documents: tuple[Document, ...]) -> dict[str, str]:
    """Keys of documents by arXiv id and by title. Not to be changed."""
    return {name: d.key for d in documents for name in (d.arxiv, title_key(d.title)) if name}


def _days(entry: Entry) -> list[date]:
    return [day for day in (entry.published, entry.updated) if day]


def _recency(entry: Entry, seen_on: date, until: date, half_life_days: float) -> ScorePart:
    known = [day for day in _days(entry) if day <= until]
    latest = max(known, default=min(seen_on, until))
    age = (until - latest).days
    what = "first seen" if not known else "changed" if entry.updated == latest != entry.published else "published"
    ago = {0: "today", 1: "yesterday"}.get(age, f"{age} days ago")
    return ScorePart(name="recency", value=2.0 ** (-age / half_life_days), because=f"{what} {ago}")


def _velocity(entry: Entry, counts: Sequence[Count], until: date) -> ScorePart:
    """Votes and comments a day: between two counts where there are two, else since the paper is out."""
    known = [c for c in counts if c.seen_on <= until]
    if not known:
        return ScorePart(name="velocity", value=0.0, because="its votes are not counted")
    first, last = known[0], known[-1]
    days, num = (last.seen_on - first.seen_on).days, _num(last) - _num(first)
    if not days:
        start = min((day for day in (entry.updated, entry.published) if day), default=last.seen_on)
        days, num = max(1, (last.seen_on - start).days), _num(last)
    per_day = max(0.0, num / days)
    because = f"votes and comments: {num} in {days} day{'s' if days > 1 else ''}"
    return ScorePart(name="velocity", value=per_day / (per_day + HALF_FULL_PER_DAY), because=because)


def _num(count: Count) -> int:
    return (count.num_votes or 0) + (count.num_comments or 0)


def _interest(value: float, because: str) -> ScorePart:
    return ScorePart(name="interest", value=INTEREST_WEIGHT * value, because=because)


def _read(entry: Entry, marks: Marks) -> Iterator[ScorePart]:
    if entry.id in marks.read:
        yield ScorePart(name="read", value=-READ_WEIGHT, because="you have read it")
