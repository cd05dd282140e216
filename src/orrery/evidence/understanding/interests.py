"""How much each of some papers is what a reader follows or upvoted, by layer, by technique or by likeness.

Comparing thousands of papers takes seconds, so what came out is kept in the library until papers or marks change.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from orrery.evidence.feed.entry import Classification, Entry
from orrery.evidence.feed.marks import Marks
from orrery.evidence.feed.saved_entries import get_entry
from orrery.evidence.feed.store import Store
from orrery.evidence.feed.text import title_id
from orrery.evidence.find.document import LIBRARY
from orrery.evidence.find.fields import columns
from orrery.evidence.find.library_cache import library
from orrery.evidence.find.likeness import TopicModel
from orrery.evidence.find.made import document_of_entry
from orrery.evidence.find.terms import terms
from orrery.evidence.understanding.understand import house, understood

MIN_INTEREST = 0.1
"""Smallest likeness that counts; what is less alike is as unlike as anything."""

MAX_WORDS = 3
"""That are named as shared."""

MAX_KEPT = 8
"""Lists of papers whose likeness is kept."""

TABLES = "create table likeness (mark text primary key, body text not null)"

Met = tuple[float, str]
"""Strength of a match, up to 1, and its reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """Words that a reader follows, or a paper that they upvoted."""

    because: str
    words: str
    id: str = ""  # of the paper, which is like itself without being news


class Interests:
    """The interests of a reader in some papers, which are known by their place in the list."""

    def __init__(
        self, store: Store, marks: Marks, entries: Sequence[Entry], classification: Mapping[str, Classification]
    ) -> None:
        self._marks, self._entries, self._description = marks, entries, classification
        liked = [e for id in sorted(marks.upvoted) if (e := get_entry(store, id) or filed_entry(id))]
        queries = [_Asked(because=f"like {words!r}, which you follow", words=words) for words in marks.words]
        queries += [
            _Asked(because=f"like {e.title!r}, which you upvoted", words=f"{e.title} {e.abstract}", id=e.id)
            for e in liked
        ]
        self._follows = bool(queries or marks.layers or marks.techniques)
        self._alike = _retained(store, entries, liked, classification, queries) if queries and entries else []

    def strongest(self, place: int) -> Met:
        """The strongest interest that a paper meets; 0 where it meets none."""
        nothing = "nothing that you follow" if self._follows else "you follow nothing yet"
        return max((met for met in self._met(place) if met[0] >= MIN_INTEREST), default=(0.0, nothing))

    def _met(self, place: int) -> Iterator[Met]:
        classifications = self._description[self._entries[place].id]
        if classifications.layer in self._marks.layers:
            yield classifications.layer_confidence_frac, f"layer {classifications.layer}, which you follow"
        for name, sure in classifications.techniques:
            if name in self._marks.techniques:
                yield sure, f"technique {name}, which you follow"
        if self._alike:
            yield self._alike[place]


def filed_entry(id: str) -> Entry | None:
    """A paper that has a file, as a feed would bring it: in our words instead of the authors'."""
    found = next((d for d in library() if id in (d.arxiv, title_id(d.title))), None)
    return Entry(id=id, title=found.title, abstract=found.text, source=LIBRARY) if found else None


def _retained(
    store: Store,
    entries: Sequence[Entry],
    liked: Sequence[Entry],
    classification: Mapping[str, Classification],
    queries: Sequence[_Asked],
) -> list[Met]:
    """Likeness of each paper, as it was kept for the same papers and the same questions, or computed now."""
    store.extend("likeness", TABLES)
    text = [house(), *(f"{e.id} {e.title} {e.abstract}" for e in (*entries, *liked)), *map(repr, queries)]
    mark = sha256("\n".join(text).encode()).hexdigest()
    if rows := store.rows("select body from likeness where mark = ?", (mark,)):
        return [(value, because) for value, because in json.loads(rows[0]["body"])]
    found = _compared(entries, liked, {**classification, **understood(store, liked)}, queries)
    with store.transaction():
        store.execute("insert or replace into likeness values (?, ?)", (mark, json.dumps(found)))
        store.execute(
            "delete from likeness where rowid not in (select rowid from likeness order by rowid desc limit ?)",
            (MAX_KEPT,),
        )
    return found


def _compared(
    entries: Sequence[Entry],
    liked: Sequence[Entry],
    classification: Mapping[str, Classification],
    interests: Sequence[_Asked],
) -> list[Met]:
    """For each paper what it is most like, with the words that both share."""
    likeness = TopicModel([columns(document_of_entry(e, classification[e.id])) for e in (*entries, *liked)])
    queries = [terms(one.words) for one in interests]
    scores = np.stack([np.minimum(likeness.scores(query)[: len(entries)], 1.0) for query in queries])
    for row, one in enumerate(interests):
        scores[row, [place for place, e in enumerate(entries) if e.id == one.id]] = 0.0
    whose, best = scores.argmax(axis=0), scores.max(axis=0)
    found: list[Met] = [(0.0, "")] * len(entries)
    for row, (one, query) in enumerate(zip(interests, queries, strict=True)):
        for place in map(int, np.flatnonzero((whose == row) & (best >= MIN_INTEREST))):
            shared = ", ".join(likeness.because(query, place, MAX_WORDS))
            found[place] = (float(best[place]), f"{one.because}{f': {shared}' if shared else ''}")
    return found
