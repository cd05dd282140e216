"""Papers that answer a query: by words, by likeness, and by both.

Both searches score every document; each is scaled to its own best, and the two are added with a weight. A query that
is a key or an arXiv id, or nearly one, finds that paper first. Words that no paper has are read as the nearest one
that some paper has, and the answer says so.
"""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from orrery.base.errors import ScenarioError
from orrery.evidence.find.conditions import Found, meeting
from orrery.evidence.find.document import Document
from orrery.evidence.find.fields import columns
from orrery.evidence.find.full_text import FullText
from orrery.evidence.find.likeness import TopicModel
from orrery.evidence.find.parsed_query import parse_query
from orrery.evidence.find.terms import STOP_WORDS, asked_terms, is_concept, says, words

Kind = Literal["words", "likeness", "both"]

WORDS_FRAC = 0.6
"""Weight of the words against the likeness, set on every other query of the ranking test."""

MIN_FRAC = 0.15
"""Smallest share of the best score; what is below has hardly anything to do with the query."""

NEAR_KEY_RATIO = 0.85
SHORTEST_KEY, MAX_KEY_WORDS = 4, 5
NEAR_WORD_RATIO = 0.85
SHORTEST_TYPO = 7
"""Minimum similarity of a misspelled key or word, and minimum length of a word that may be a typo."""

MAX_WORDS = 64
"""Largest number of words of a query; the rest is not read."""

BECAUSE = 6
"""Words that say why a paper was found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A paper that was found, and why."""

    document: Document
    score_ratio: float  # 1 is the best that words and likeness could say; above it stands a paper that was named
    words_ratio: float  # of the best by words
    likeness_ratio: float  # of the best by likeness
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryResult:
    """The papers for one query, best first."""

    query: str
    hits: tuple[Hit, ...]
    read_as: dict[str, str] = field(default_factory=dict[str, str])  # misspelled word -> the word that was taken
    conditions: tuple[str, ...] = ()  # what every paper of the answer meets


class Finder:
    """Documents, ready to be searched."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self.documents = tuple(documents)
        self._columns = [columns(document) for document in documents]
        self._words = FullText(self._columns)
        self._likeness = TopicModel(self._columns)
        self._place = {document.key: i for i, document in enumerate(documents)}

    def search(
        self,
        query: str,
        *,
        among: Sequence[Document] | None = None,
        limit: int = 10,
        kind: Kind = "both",
        words_frac: float = WORDS_FRAC,
    ) -> QueryResult:
        """The best papers for a query, of all or of some. Raises where the query says nothing."""
        taken = parse_query(query, self.documents)
        places = range(len(self.documents)) if among is None else [self._place[d.key] for d in among]
        if not taken.conditions:
            return self._by_text(query, places, {}, limit=limit, kind=kind, words_frac=words_frac)
        met = meeting(taken, [self.documents[i] for i in places], self.documents)
        meeting_places = [i for i in places if self.documents[i].key in met]
        if says(taken.text):
            found = self._by_text(taken.text, meeting_places, met, limit=limit, kind=kind, words_frac=words_frac)
        else:
            found = self._by_reach(meeting_places, met, limit)
        return replace(found, query=query, conditions=taken.conditions)

    def _by_reach(self, places: Sequence[int], met: Found, limit: int) -> QueryResult:
        """Papers that meet conditions where nothing else is asked: those that meet the number by most come first."""
        ordered = sorted(places, key=lambda i: (-met[self.documents[i].key][0], i))[:limit]
        hits = (
            Hit(document=d, score_ratio=1.0, words_ratio=0.0, likeness_ratio=0.0, because=met[d.key][1])
            for d in map(self.documents.__getitem__, ordered)
        )
        return QueryResult(query="", hits=tuple(hits))

    def _by_text(
        self, query: str, allowed: Sequence[int], met: Found, *, limit: int, kind: Kind, words_frac: float
    ) -> QueryResult:
        """Papers by words and likeness, of some."""
        query_terms, read_as = self._inputs(query)
        by_words = self._words.scores(query_terms)
        by_likeness = self._likeness.scores(query_terms)
        best_words = max((by_words.get(i, 0.0) for i in allowed), default=0.0)
        best_likeness = max((float(by_likeness[i]) for i in allowed), default=0.0)
        share = {"words": 1.0, "likeness": 0.0, "both": words_frac}[kind]
        named = dict.fromkeys(self._named(query), 1.0)
        hits: list[tuple[float, int, float, float]] = []
        for i in allowed:
            w = by_words.get(i, 0.0) / best_words if best_words > 0.0 else 0.0
            v = max(0.0, float(by_likeness[i])) / best_likeness if best_likeness > 0.0 else 0.0
            if w > 0.0 or i in named or kind == "likeness":  # a paper that shares no term is no answer
                hits.append((named.get(i, 0.0) + share * w + (1.0 - share) * v, i, w, v))
        hits.sort(key=lambda hit: (-hit[0], hit[1]))
        best = [hit for hit in hits[:limit] if hit[0] > MIN_FRAC * hits[0][0]]
        return QueryResult(
            query=query,
            read_as=read_as,
            hits=tuple(
                Hit(
                    document=self.documents[i],
                    score_ratio=score,
                    words_ratio=w,
                    likeness_ratio=v,
                    because=(*met.get(self.documents[i].key, (0.0, ()))[1], *self._because(query_terms, i)),
                )
                for score, i, w, v in best
            ),
        )

    def related(self, key: str, limit: int = 5) -> tuple[Hit, ...]:
        """The papers that are most like one of them: the same topics, and techniques that both use."""
        one = self._place[key]
        likeness = self._likeness.scores_like(one)
        mine = set(self.documents[one].techniques)
        scores = [
            float(likeness[i]) + SHARED_TECHNIQUE * bool(mine & set(d.techniques)) for i, d in enumerate(self.documents)
        ]
        order = sorted((i for i in range(len(scores)) if i != one), key=lambda i: -scores[i])[:limit]
        return tuple(
            Hit(
                document=self.documents[i],
                score_ratio=scores[i],
                words_ratio=0.0,
                likeness_ratio=float(likeness[i]),
                because=self._likeness.because_like(one, i, BECAUSE),
            )
            for i in order
            if scores[i] > MIN_ALIKE
        )

    def _inputs(self, query: str) -> tuple[list[str], dict[str, str]]:
        """The query's terms, each once, with misspelled words put right."""
        query_words = [word for word in words(query) if word not in STOP_WORDS][:MAX_WORDS]
        if not query_words:
            raise ScenarioError(
                f"The query {query[:60]!r} has no word to look for; write what the paper is about, such as 'kv cache'."
            )
        read_as = {word: near for word in dict.fromkeys(query_words) if (near := self._meant(word)) != word}
        text = " ".join(read_as.get(word, word) for word in words(query))
        return asked_terms(text), read_as

    def _meant(self, word: str) -> str:
        """The word itself where any paper has it, or none is near; else the nearest that some paper has."""
        if len(word) < SHORTEST_TYPO or not word.isalpha() or self._likeness.knows(word) or word in self._people:
            return word
        alike = [other for other in self._likeness.spellings() if abs(len(other) - len(word)) <= 2]
        near = difflib.get_close_matches(word, alike, n=1, cutoff=NEAR_WORD_RATIO)
        return near[0] if near else word

    def _named(self, query: str) -> list[int]:
        """Papers whose key, title or arXiv id the query is, or of whose key it is a misspelling."""
        query_words = words(query)
        squashed = "".join(query_words)
        exact = [i for i, names in enumerate(self._names) if squashed in names]
        if exact or len(squashed) < SHORTEST_KEY or len(query_words) > MAX_KEY_WORDS:
            return exact
        keys = {names[0]: i for i, names in enumerate(self._names)}
        near = difflib.get_close_matches(squashed, keys, n=1, cutoff=NEAR_KEY_RATIO)
        return [keys[key] for key in near]

    @cached_property
    def _people(self) -> frozenset[str]:
        """Every word of an author's name."""
        return frozenset(word for columns in self._columns for word in columns["authors"])

    @cached_property
    def _names(self) -> list[tuple[str, ...]]:
        """Key, arXiv id and title of each document, as letters and digits alone."""
        return [tuple("".join(words(name)) for name in (d.key, d.arxiv, d.title)) for d in self.documents]

    def _because(self, query_terms: Sequence[str], place: int) -> tuple[str, ...]:
        """The query's own words in the paper, then the paper's words that the query is about."""
        there = {term for column in self._columns[place].values() for term in column}
        shared = [term for term in query_terms if term in there and not is_concept(term)]
        return tuple(dict.fromkeys([*shared, *self._likeness.because(query_terms, place, BECAUSE)]))[:BECAUSE]


SHARED_TECHNIQUE = 0.2
"""Addition to the similarity of two papers for a technique that both use."""

MIN_ALIKE = 0.15
"""Likeness below which two papers have nothing to do with each other."""
