"""``orrery papers fetch``: new papers into the library."""

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import day, with_addresses, with_library, with_page_year

if TYPE_CHECKING:
    from orrery.evidence.feed.fetch import Fetched
    from orrery.evidence.feed.store import Store

INCOMPLETE = 1
"""Exit code where a source could not be read to its end; what was read is kept, and the next fetch goes on."""

EXAMPLES = """\b
Examples:
  orrery papers fetch                                    the latest of cs.DC, cs.AR and cs.PF on arXiv
  orrery papers fetch --query '"LLM serving" cache' --category cs.DC --category cs.LG --since 30d
  orrery papers fetch --source rss --source daily --json
  orrery papers fetch --source scholar --source openreview    citations, venues and decisions of known papers
  orrery papers fetch --source scholar --query "KV cache compression" --since 30d
  orrery papers fetch --source daily-papers.txt          a page saved as text, or a saved feed
Then: orrery papers trending"""


@click.command("fetch", epilog=EXAMPLES)
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="arxiv|rss|daily|pages|scholar|openreview|FILE",
    default=("arxiv",),
    help="arXiv's search (default) or lists of the day; Hugging Face's daily papers, or pages of papers; Semantic "
    "Scholar; OpenReview; a file. The last three services search by --query; without it they say more of known papers.",
)
@click.option(
    "--query", default="", metavar="WORDS", help="Words; for arXiv its own search language too (ti:, abs:, AND, …)."
)
@click.option("--category", "categories", multiple=True, metavar="NAME", help="An arXiv category; repeat for more.")
@click.option("--since", type=day, metavar="DATE", help="Nothing older: 2026-11-01, or 7d for seven days ago.")
@click.option(
    "--max",
    "most",
    type=click.IntRange(1, 30_000),
    default=200,
    metavar="N",
    show_default=True,
    help="The most papers of a source.",
)
@with_page_year
@with_addresses("arxiv", "rss", "daily", "pages", "scholar", "openreview")
@with_library
@as_json
def command(
    sources: tuple[str, ...],
    query: str,
    categories: tuple[str, ...],
    since: date | None,
    most: int,
    page_year: int | None,
    library: Path | None,
    is_json: bool,
    pause: float | None,
    **addresses: str,
) -> int:
    """Get new papers; whatever is odd in them is left out with a line that says why, and the rest is kept."""
    from orrery.cli.own_library import open_library
    from orrery.evidence.feed.question import Question
    from orrery.evidence.feed.sources import SOURCES, source_named

    named = {name for name in sources if name in SOURCES or not Path(name).is_file()}
    for name in named:
        source_named(name)
    found: dict[str, Fetched] = {}
    with open_library(library) as store:
        for name in dict.fromkeys(sources):
            if name in named:
                base = addresses[f"{name}_url"]
                question = Question(
                    source=name, query=query, categories=categories, since=since, most_papers=most, base=base
                )
                found[name] = _fetched(store, question, pause)
            else:
                found[name] = _read(store, Path(name), page_year)
            _say(name, found[name], sys.stderr if is_json else sys.stdout)
    if is_json:
        from orrery.cli.output import print_json

        print_json(_json(found))
    return 0 if all(f.is_complete for f in found.values()) else INCOMPLETE


def _fetched(store: "Store", question: Any, pause: float | None) -> "Fetched":
    from orrery.cli.progress import bar
    from orrery.evidence.feed.fetch import fetch
    from orrery.evidence.feed.polite import reader_for
    from orrery.evidence.feed.sources import about
    from orrery.evidence.find.known_papers import known_papers

    question = about(question, store, known_papers(store, question.since), date.today())
    reader = reader_for(question.source, question.base, pause)
    with bar(f"pages of {question.source}") as report:
        return fetch(store, reader, question, date.today(), report)


def _read(store: "Store", path: Path, page_year: int | None) -> "Fetched":
    from orrery.evidence.feed.fetch import keep_read
    from orrery.evidence.feed.file import read_file

    return keep_read(store, read_file(path, date.today(), page_year), date.today())


def _say(name: str, found: "Fetched", out: TextIO) -> None:
    """Print a line on what was fetched, below the entries that were left out."""
    from orrery.cli.own_library import say_skipped

    say_skipped(found.skipped)
    saved = found.saved
    if not found.is_list:
        parts = [f"asked about {found.num_asked} known papers, and says more of {found.num_records}"]
    else:
        parts = [f"{saved.num_new} new", f"{saved.num_updated} updated", f"{saved.num_same} known already"]
    if found.num_unchanged:
        parts.append(f"{found.num_unchanged} of {found.num_pages} pages unchanged since the last time")
    if found.went_on_from:
        parts.append(f"went on from page {found.went_on_from + 1}")
    end = "" if found.is_complete else "; it broke off, and the next fetch goes on from there"
    print(f"{name}: {', '.join(parts)}{end}.", file=out)


def _json(found: "dict[str, Fetched]") -> dict[str, Any]:
    from dataclasses import asdict

    from orrery.evidence.feed.entry import entry_json
    from orrery.evidence.feed.text import title_key
    from orrery.evidence.understanding.trending import files_by_name

    filed = files_by_name()
    papers = {
        e.id: entry_json(e, None, filed.get(e.id) or filed.get(title_key(e.title), ""))
        for f in found.values()
        for e in f.entries
    }
    return {
        "sources": {
            name: {
                **asdict(f.saved),
                "num_pages": f.num_pages,
                "num_unchanged": f.num_unchanged,
                "num_asked": f.num_asked,
                "num_records": f.num_records,
                "went_on_from": f.went_on_from,
                "is_complete": f.is_complete,
            }
            for name, f in found.items()
        },
        "papers": list(papers.values()),
        "skipped": [asdict(s) for f in found.values() for s in f.skipped],
    }
