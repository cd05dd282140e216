"""``orrery papers show``: one paper, as an encyclopedia has it."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import with_library

if TYPE_CHECKING:
    from orrery.evidence.feed.entry import Classification, Entry
    from orrery.evidence.feed.record import Record
    from orrery.evidence.find.entry import PaperEntry
    from orrery.evidence.paper_file import Paper

EXAMPLES = """\b
Examples:
  orrery papers show distserve
  orrery papers show 2401.09670 --json       an arXiv id does as well, also of a fetched paper
  orrery papers show zero-offload --bibtex >> references.bib"""


@click.command("show", epilog=EXAMPLES)
@click.argument("key")
@click.option("--curve/--no-curve", "has_curve", default=True, help="Where it helps and where it hurts; default: yes.")
@click.option("--bibtex", "is_bibtex", is_flag=True, help="Only the entry for a BibTeX file.")
@with_library
@as_json
def command(key: str, has_curve: bool, is_bibtex: bool, library: Path | None, is_json: bool) -> None:
    """One paper: what it does, gains and costs, where it helps and hurts, what came out, what it leaves open."""
    from orrery.base.errors import UnknownName
    from orrery.evidence.understanding.paper_lookup import named

    try:
        paper = named(key)
    except UnknownName:
        if (found := fetched(key, library)) is None:
            raise
        records = records_of(library, found[0].id, found[0].title)
        _show_fetched(*found, records, is_bibtex=is_bibtex, is_json=is_json)
    else:
        records = records_of(library, paper.arxiv, paper.title)
        _show(paper, records, has_curve=has_curve, is_bibtex=is_bibtex, is_json=is_json)


def records_of(library: Path | None, arxiv: str, title: str) -> "tuple[Record, ...]":
    """Records of a paper, by its arXiv id and its title; none where no source was asked."""
    from orrery.cli.own_library import open_library
    from orrery.evidence.feed.records import all_records
    from orrery.evidence.feed.text import title_id
    from orrery.evidence.library import library_file

    if not library_file(library).exists():
        return ()
    with open_library(library) as store:
        known = all_records(store)
    return tuple(r for name in (arxiv, title_id(title)) for r in known.get(name, ()))


def fetched(key: str, library: Path | None) -> "tuple[Entry, Classification] | None":
    """The fetched paper that is meant; None where there is no such paper, or no library of the reader's own."""
    from orrery.cli.own_library import open_library
    from orrery.evidence.library import library_file
    from orrery.evidence.understanding import paper_lookup

    if not library_file(library).exists():
        return None
    with open_library(library) as store:
        return paper_lookup.fetched(store, key)


def _show(paper: "Paper", records: "tuple[Record, ...]", *, has_curve: bool, is_bibtex: bool, is_json: bool) -> None:
    from orrery.cli.output import print_json
    from orrery.evidence.find.citation import bibtex

    if is_bibtex:
        authors = paper.bibliography.authors
        cited = bibtex(paper.key, paper.title, year=paper.year, arxiv=paper.arxiv, url=paper.link, authors=authors)
        _print_cited(cited, is_json)
        return
    entry = _entry(paper, has_curve)
    if is_json:
        print_json({**entry.to_json(), "records": [asdict(r) for r in records]})
        return
    from orrery.cli.paper_views import print_entry

    print_entry(entry, records)


def _show_fetched(
    entry: "Entry", classification: "Classification", records: "tuple[Record, ...]", *, is_bibtex: bool, is_json: bool
) -> None:
    from orrery.cli.output import print_json
    from orrery.evidence.feed.entry import entry_json
    from orrery.evidence.find.citation import bibtex

    if is_bibtex:
        year, arxiv = entry.published.year if entry.published else None, "" if ":" in entry.id else entry.id
        cited = bibtex(entry.id, entry.title, year=year, arxiv=arxiv, url=entry.url, authors=entry.authors)
        _print_cited(cited, is_json)
        return
    if is_json:
        print_json({**entry_json(entry, classification), "records": [asdict(r) for r in records]})
        return
    from orrery.cli.paper_views import print_fetched

    print_fetched(entry, classification, records)


def _print_cited(cited: str, is_json: bool) -> None:
    from orrery.cli.output import print_json

    if is_json:
        print_json({"bibtex": cited})
    else:
        print(cited)


def _entry(paper: "Paper", has_curve: bool) -> "PaperEntry":
    """The entry; who waits at a terminal is told for what."""
    import sys

    from orrery.evidence.find.entry import entry_of
    from orrery.evidence.find.library_cache import library
    from orrery.evidence.find.search import Finder

    finder = Finder(library())
    if not sys.stderr.isatty():
        return entry_of(paper, finder, has_curve=has_curve)
    from rich.console import Console

    with Console(stderr=True).status(
        "Reading the paper's file; a curve that is not on file takes seconds (--no-curve)."
    ):
        return entry_of(paper, finder, has_curve=has_curve)
