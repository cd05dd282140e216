"""Quality of the search: judged queries, and the ranks of their papers.

Source: Voorhees, "The TREC-8 Question Answering Track Report" (1999), mean reciprocal rank; Järvelin and Kekäläinen,
"Cumulated Gain-Based Evaluation of IR Techniques" (2002), discounted gain.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from orrery.base.sources import read_toml
from orrery.evidence.find.search import WORDS_FRAC, Finder, Kind

DEPTH = 20
"""Places that are looked at; a paper below counts as not found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query, and the papers of which one must come first."""

    text: str
    relevant: tuple[str, ...]
    partly: tuple[str, ...] = ()  # touch it, and need not come first


def read_queries(path: Path) -> tuple[Query, ...]:
    """The queries of a file, in its order."""
    return tuple(
        Query(text=table["text"], relevant=tuple(table["relevant"]), partly=tuple(table.get("partly", ())))
        for table in read_toml(path)["query"]
    )


def mean_reciprocal_rank(
    finder: Finder, queries: Sequence[Query], kind: Kind = "both", words_frac: float = WORDS_FRAC
) -> float:
    """The mean over the queries of 1 / place of the first wanted paper, 0 where none is found."""
    return sum(reciprocal_rank(finder, query, kind, words_frac) for query in queries) / len(queries)


def reciprocal_rank(finder: Finder, query: Query, kind: Kind = "both", words_frac: float = WORDS_FRAC) -> float:
    """1 / place of the first wanted paper, 0 where none is found."""
    hits = finder.search(query.text, limit=DEPTH, kind=kind, words_frac=words_frac).hits
    return next((1.0 / place for place, hit in enumerate(hits, 1) if hit.document.key in query.relevant), 0.0)


def gain_ratio(finder: Finder, query: Query, depth: int = 10) -> float:
    """The nDCG of the first places: grade / log2(1 + place), summed, over that of the best order; grades 2 and 1."""
    grades = dict.fromkeys(query.partly, 1) | dict.fromkeys(query.relevant, 2)
    hits = finder.search(query.text, limit=depth).hits
    best = _gain(sorted(grades.values(), reverse=True)[:depth])
    return _gain([grades.get(hit.document.key, 0) for hit in hits]) / best


def _gain(grades: Sequence[int]) -> float:
    return sum(grade / math.log2(1 + place) for place, grade in enumerate(grades, 1))
