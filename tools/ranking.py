"""Say how well papers are found, and write it into docs/papers-library.md.

python tools/ranking.py            # the table, on standard output and on the page
python tools/ranking.py --weights  # which weight of words against likeness does best on the queries that set it
python tools/ranking.py --misses   # the queries whose paper does not come first
"""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from judged_queries import Query, mean_reciprocal_rank, read_queries, reciprocal_rank
from orrery.base.units import percent
from orrery.evidence.find.library_cache import library
from orrery.evidence.find.search import Finder, Kind

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "papers-library.md"
QUERIES = ROOT / "tests" / "evidence" / "find" / "queries.toml"
BETWEEN = re.compile(r"(?<=<!-- ranking:start -->\n).*?(?=<!-- ranking:end -->)", re.DOTALL)

WEIGHTS = [i / 10 for i in range(11)]


def main() -> None:
    """Search for every query, three ways."""
    parser = argparse.ArgumentParser(description="Say how well papers are found.")
    parser.add_argument("--weights", action="store_true", help="try weights on the queries that set them")
    parser.add_argument("--misses", action="store_true", help="list queries whose paper does not come first")
    requested = parser.parse_args()
    documents = library()
    finder, known = Finder(documents), {document.key for document in documents}
    queries = [query for query in read_queries(QUERIES) if known & set(query.relevant)]
    if requested.weights:
        for weight in WEIGHTS:
            print(f"{weight:.1f}  {mean_reciprocal_rank(finder, queries[::2], words_frac=weight):.3f}")
    elif requested.misses:
        for query in queries:
            if (found := reciprocal_rank(finder, query)) < 1.0:
                print(f"{found:.2f}  {query.text}  ({', '.join(query.relevant)})")
    else:
        text = table(finder, queries, len(documents))
        print(text)
        PAGE.write_text(BETWEEN.sub(lambda _: text, PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def table(finder: Finder, queries: Sequence[Query], num_documents: int) -> str:
    """Mean reciprocal ranks by kind of search, on the queries that set the weight and on the others."""
    setting, others = queries[::2], queries[1::2]
    rows = [
        f"{num_documents} papers, {len(queries)} queries:",
        "",
        f"| search | {len(setting)} queries that set the weight | {len(others)} others | paper comes first |",
        "|---|---:|---:|---:|",
    ]
    for kind in get_args(Kind):
        ranks = [mean_reciprocal_rank(finder, half, kind) for half in (setting, others)]
        first = sum(reciprocal_rank(finder, query, kind) == 1.0 for query in queries) / len(queries)
        name = {"words": "words only", "likeness": "likeness only", "both": "**both**"}[kind]
        rows.append(f"| {name} | {ranks[0]:.2f} | {ranks[1]:.2f} | {percent(first)} |")
    return "\n".join(rows) + "\n"


if __name__ == "__main__":
    main()
