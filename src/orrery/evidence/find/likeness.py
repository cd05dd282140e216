"""Documents by what they are about: words weighted by rarity, and the topics that words share by standing together.

A document is a vector of stems, log(1 + weight) x log(documents / documents that have it), of length one. The topics
are the leading singular vectors of all documents; two texts are alike by the cosine of their topics. A text that is
not among the fitted ones is projected in the same way.

Source: Deerwester et al., "Indexing by Latent Semantic Analysis" (1990).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from orrery.evidence.find.fields import WEIGHTS
from orrery.evidence.find.terms import is_concept, stems, term_text

NUM_TOPICS = 100
MAX_FITTED = 1000
"""Documents whose words make the topics; further ones are projected."""

Array = np.ndarray[Any, np.dtype[np.float32]]
Places = np.ndarray[Any, np.dtype[np.intp]]


@dataclass(frozen=True, slots=True)
class Vector:
    """A text's stems with their weights, and its topics; both of length one, or zero where no stem is known."""

    places: Places
    weights: Array
    topics: Array


class TopicModel:
    """The topics of a list of documents. Documents are known by their place in the list."""

    def __init__(self, documents: Sequence[Mapping[str, Sequence[str]]]) -> None:
        bags = [_bag(columns) for columns in documents]
        self._stem = stems(term for bag in bags for term in bag)
        counts = [self._stemmed(bag) for bag in bags]
        fitted = counts[:MAX_FITTED]
        num_with = Counter(stem for count in fitted for stem in count)
        self._place = {stem: i for i, stem in enumerate(num_with)}
        self._rarity = np.log((1.0 + len(fitted)) / np.array(list(num_with.values()), dtype=np.float32))
        self._word = {self._stem.get(term, ""): term for term in sorted(self._stem, key=len, reverse=True)}
        self._stems = list(self._place)
        self._base = self._fit(fitted)
        self._last = ((), self._vector({}))
        self._vectors = [self._vector(count) for count in counts]
        self._topics = np.stack([v.topics for v in self._vectors]) if counts else np.zeros((0, 0), np.float32)

    def scores(self, query: Sequence[str]) -> Array:
        """Cosine of every document's topics with the query's; zero for a query of unknown words."""
        return self._topics @ self._query(query).topics

    def scores_like(self, place: int) -> Array:
        """Cosine of every document's topics with those of one of them."""
        return self._topics @ self._topics[place]

    def because(self, query: Sequence[str], place: int, most: int) -> tuple[str, ...]:
        """The words of a document that make it alike to a query, first the one that adds most to the cosine."""
        return self._shared(self._query(query), place, most)

    def because_like(self, one: int, other: int, most: int) -> tuple[str, ...]:
        """The words of ``other`` that make it alike to ``one``."""
        return self._shared(self._vectors[one], other, most)

    def knows(self, term: str) -> bool:
        """Whether any document has this term, as it is spelled or by its stem."""
        return term in self._stem or stems([term]).get(term, "") in self._place

    def spellings(self) -> list[str]:
        """All words of the documents, without concepts."""
        return [term for term in self._stem if not is_concept(term)]

    def _query(self, query: Sequence[str]) -> Vector:
        """A query's vector; that of the last one is kept, as scores and reasons are asked for in turn."""
        if self._last[0] != tuple(query):
            self._last = (tuple(query), self._inputs(query))
        return self._last[1]

    def _inputs(self, query: Sequence[str]) -> Vector:
        unknown = [term for term in query if term not in self._stem]
        more = stems(unknown) if unknown else {}
        return self._vector(Counter(self._stem.get(term) or more.get(term, term) for term in query))

    def _stemmed(self, bag: Mapping[str, float]) -> dict[str, float]:
        count: dict[str, float] = {}
        for term, weight in bag.items():
            if stem := self._stem.get(term):
                count[stem] = count.get(stem, 0.0) + weight
        return count

    def _fit(self, counts: Sequence[Mapping[str, float]]) -> Array:
        """Topics as columns over stems: X' U / S of the largest singular values, from the eigenvectors of X X'."""
        matrix = np.zeros((len(counts), len(self._place)), dtype=np.float32)
        for row, count in enumerate(counts):
            places, weights = self._weighted(count)
            matrix[row, places] = weights
        values, vectors = np.linalg.eigh(matrix @ matrix.T)
        retained = values[-NUM_TOPICS:] > 1e-4
        values, vectors = values[-NUM_TOPICS:][retained], vectors[:, -NUM_TOPICS:][:, retained]
        return (matrix.T @ (vectors / np.sqrt(values))).astype(np.float32)

    def _weighted(self, count: Mapping[str, float]) -> tuple[Places, Array]:
        known = [(self._place[stem], weight) for stem, weight in count.items() if stem in self._place]
        places = np.array([place for place, _ in known], dtype=np.intp)
        weights = np.array([math.log1p(weight) for _, weight in known], dtype=np.float32) * self._rarity[places]
        return places, _unit(weights)

    def _vector(self, count: Mapping[str, float]) -> Vector:
        places, weights = self._weighted(count)
        return Vector(places, weights, _unit(weights @ self._base[places]))

    def _shared(self, query_vector: Vector, place: int, most: int) -> tuple[str, ...]:
        found = self._vectors[place]
        adds = found.weights * (self._base[found.places] @ query_vector.topics)
        order = [i for i in np.argsort(-adds)[:most] if adds[i] > 0.0]
        named = (term_text(self._word[self._stems[found.places[i]]]) for i in order)
        return tuple(dict.fromkeys(named))


def _bag(columns: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """Terms with the sum of the weights of the columns that they stand in."""
    bag: dict[str, float] = {}
    for name, weight in WEIGHTS.items():
        for term in columns.get(name, ()):
            bag[term] = bag.get(term, 0.0) + weight
    return bag


def _unit(vector: Array) -> Array:
    length = float(np.sqrt(vector @ vector))
    return vector / length if length > 0.0 else vector
