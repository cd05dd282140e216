"""``orrery papers search``: papers by what they are about."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import with_library
from orrery.cli.paper_filters import filter_flags

if TYPE_CHECKING:
    from orrery.evidence.find.document import Document
    from orrery.evidence.find.search import Hit, QueryResult

EXAMPLES = """\b
Examples:
  orrery papers search "fine-tune a 175B model on one consumer GPU"
  orrery papers search "moe all-to-all" --year 2024.. --limit 5
  orrery papers search distserv              a key finds its paper, misspelled too
  orrery papers search "TTFT under load" --device a100 --json
  orrery papers search 'author:"Tri Dao"'      also layer:, technique:, device:, metric:, year:
  orrery papers search "throughput > 3x on H100"  a number that a claim meets
  orrery papers search '"phase splitting"'     words in that order
  orrery papers search "speculative decoding" --fetched"""


@click.command("search", epilog=EXAMPLES)
@click.argument("query", nargs=-1, required=True)
@filter_flags
@click.option("--limit", default=10, metavar="N", type=click.IntRange(1, 1000), help="At most so many; default 10.")
@click.option("--fetched", "has_fetched", is_flag=True, help="Among fetched papers too, not only those with a file.")
@with_library
@as_json
def command(
    query: tuple[str, ...], limit: int, has_fetched: bool, library: Path | None, is_json: bool, **filters: str
) -> None:
    """Find papers in your own words: a problem, a mechanism, a device, a number, or a key.

    Words and likeness of meaning count together; each paper says which of its words made it alike. Quoted words must
    stand in that order, and numbers and fields must be met.
    """
    from orrery.cli.output import print_json, print_notes
    from orrery.evidence.find.filters import Filters, select
    from orrery.evidence.find.library_cache import library as filed
    from orrery.evidence.find.search import Finder

    documents = (*filed(), *(fetched(library) if has_fetched else ()))
    among = select(documents, Filters(**filters)) if any(filters.values()) else None
    found = Finder(documents).search(" ".join(query), among=among, limit=limit)
    print_notes(f"only papers with {condition}" for condition in found.conditions)
    print_notes(f"{word!r} is read as {near!r}" for word, near in found.read_as.items())
    if is_json:
        print_json(
            {
                "query": found.query,
                "read_as": found.read_as,
                "conditions": list(found.conditions),
                "hits": [hit_json(hit) for hit in found.hits],
            }
        )
    else:
        print_hits(found)


def fetched(library: Path | None) -> "tuple[Document, ...]":
    """The new papers of the reader's own library."""
    from orrery.cli.own_library import open_library
    from orrery.evidence.understanding.paper_lookup import fetched_documents

    with open_library(library) as store:
        return fetched_documents(store)


def hit_json(hit: "Hit") -> dict[str, Any]:
    """One paper that was found, as plain data."""
    d = hit.document
    return {
        "key": d.key,
        "title": d.title,
        "year": d.year,
        "layer": d.layer,
        "kind": d.kind,
        "source": d.source,
        "url": d.url,
        "text": d.text,
        "score_ratio": round(hit.score_ratio, 4),
        "words_ratio": round(hit.words_ratio, 4),
        "likeness_ratio": round(hit.likeness_ratio, 4),
        "because": list(hit.because),
    }


def print_hits(found: "QueryResult") -> None:
    """Three lines a paper: its name, what it does, and why it was found."""
    from rich.markup import escape

    from orrery.cli.output import console

    out = console()
    if not found.hits:
        out.print(f"Nothing is known of {found.query!r}; try other words, or fewer flags.", markup=False)
    for i, hit in enumerate(found.hits, start=1):
        d = hit.document
        out.print(f"{i:2} [bold]{escape(d.key)}[/]  {escape(d.title)}  [dim]{d.year or ''} {escape(d.layer)}[/]")
        out.print(f"   {escape(d.text)}", soft_wrap=False)
        out.print(f"   [dim]because: {escape(', '.join(hit.because))}[/]")
