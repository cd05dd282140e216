"""Short documents ranked by the words that a long text shares with them: BM25 over stems.

A stem that stands ``f`` times in a document of length ``l`` counts

    rarity x log(1 + times in the query) x f (k1 + 1) / (f + k1 (1 - b + b l / mean l))

so a second hit adds less than the first, and long documents need more of them. The rarity is that among the documents,
log(1 + (n - n_with + 1/2) / (n_with + 1/2)), times a weight of the stem in texts of the query's kind, where one is
known. The sum is divided by the root of the query's length, so that short and long texts can be held against one scale.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from orrery.evidence.find.terms import stems

K1, B = 4.0, 0.6

Array = np.ndarray[Any, np.dtype[np.float32]]


class Bm25:
    """Documents as terms with their weights, known by their place in the list."""

    def __init__(
        self, documents: Sequence[Mapping[str, float]], query_weights: Mapping[str, float] | None = None
    ) -> None:
        self._stem = stems(term for document in documents for term in document)
        counts = [self._stemmed(document) for document in documents]
        num_with = Counter(stem for count in counts for stem in count)
        self._place = {stem: i for i, stem in enumerate(num_with)}
        weight = query_weights or {}
        rarest = max(weight.values(), default=1.0)
        self._rarity = np.array(
            [
                math.log(1.0 + (len(counts) - n + 0.5) / (n + 0.5)) * weight.get(stem, rarest) / rarest
                for stem, n in num_with.items()
            ],
            dtype=np.float32,
        )
        self._saturated = self._table(counts)

    def scores(self, query: Sequence[str]) -> Array:
        """Every document's sum over the query's stems; zero where none is shared."""
        unknown = {term for term in query if term not in self._stem}
        known = self._stem | (stems(unknown) if unknown else {})
        count = Counter(known.get(term, term) for term in query)
        found = [(self._place[stem], math.log1p(n)) for stem, n in count.items() if stem in self._place]
        places = np.array([place for place, _ in found], dtype=np.intp)
        times = np.array([weight for _, weight in found], dtype=np.float32) * self._rarity[places]
        return np.asarray(self._saturated[:, places] @ times / math.sqrt(max(1, len(query))), dtype=np.float32)

    def _stemmed(self, document: Mapping[str, float]) -> dict[str, float]:
        count: dict[str, float] = {}
        for term, weight in document.items():
            if stem := self._stem.get(term):
                count[stem] = count.get(stem, 0.0) + weight
        return count

    def _table(self, counts: Sequence[Mapping[str, float]]) -> Array:
        """A row a document, a column a stem: how far its hits count."""
        lengths = [sum(count.values()) for count in counts]
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        table = np.zeros((len(counts), len(self._place)), dtype=np.float32)
        for row, (count, length) in enumerate(zip(counts, lengths, strict=True)):
            for stem, hits in count.items():
                table[row, self._place[stem]] = hits * (K1 + 1.0) / (hits + K1 * (1.0 - B + B * length / mean))
        return table
