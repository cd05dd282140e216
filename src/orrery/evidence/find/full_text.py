"""Documents by the words that they share with a query: SQLite's full-text index, ranked by BM25 with a weight a column.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009); SQLite FTS5.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from orrery.evidence.find.fields import WEIGHTS, WORDS_ALONE
from orrery.evidence.find.terms import TOKENIZER

COLUMNS = WEIGHTS | WORDS_ALONE


class FullText:
    """An index in memory. Documents are known by their place in the list."""

    def __init__(self, documents: Sequence[Mapping[str, Sequence[str]]]) -> None:
        self._database = sqlite3.connect(":memory:", check_same_thread=False)  # one thread asks at a time
        names = ", ".join(COLUMNS)
        self._database.execute(f'CREATE VIRTUAL TABLE papers USING fts5({names}, tokenize = "{TOKENIZER}")')
        places = ", ".join("?" * (len(COLUMNS) + 1))
        self._database.executemany(
            f"INSERT INTO papers (rowid, {names}) VALUES ({places})",
            ((i, *(" ".join(columns[name]) for name in COLUMNS)) for i, columns in enumerate(documents)),
        )

    def scores(self, query: Sequence[str]) -> dict[int, float]:
        """Document -> score, above zero, for each that has any of these terms. Every term is quoted."""
        if not query:
            return {}
        query_terms = " OR ".join(f'"{term.replace(chr(34), "")}"' for term in query)
        weights = ", ".join(map(str, COLUMNS.values()))
        rows = self._database.execute(
            f"SELECT rowid, -bm25(papers, {weights}) FROM papers WHERE papers MATCH ?", (query_terms,)
        )
        return dict(rows.fetchall())

    def close(self) -> None:
        """Give the index's memory back."""
        self._database.close()
