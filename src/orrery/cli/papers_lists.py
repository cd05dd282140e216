"""``orrery papers lists``: a reader's named lists of papers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import with_library

if TYPE_CHECKING:
    from orrery.evidence.feed.lists import PaperList
    from orrery.evidence.feed.store import Store

EXAMPLES = """\b
Examples:
  orrery papers lists                                        every list, and how many papers it has
  orrery papers lists "to read" --add 2401.09670 --add snapkv   made where there is none
  orrery papers lists "to read" --rename later
  orrery papers lists later --remove snapkv
  orrery papers lists later --form rss > later.xml           a feed; also atom, bibtex
  orrery papers lists --form bibtex > lists.bib              all lists; each is a keyword of its papers
  orrery papers lists --import lists.bib                     from BibTeX, or from the JSON that mark --json wrote
  orrery papers lists later --delete"""

FORMS = ("text", "rss", "atom", "bibtex")


@click.command("lists", epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option("--add", multiple=True, metavar="KEY", help="Papers to put on it: a key, arXiv id or title.")
@click.option("--remove", multiple=True, metavar="KEY", help="Papers to take off it.")
@click.option("--rename", metavar="NAME", help="Another name for it.")
@click.option("--delete", "is_delete", is_flag=True, help="Delete it; its papers stay in the library.")
@click.option("--import", "source", type=click.Path(path_type=Path), metavar="FILE", help="Add lists (.bib or JSON).")
@click.option("--form", type=click.Choice(FORMS), default="text", show_default=True, help="How it is printed.")
@with_library
@as_json
def command(
    name: str | None,
    add: tuple[str, ...],
    remove: tuple[str, ...],
    rename: str | None,
    is_delete: bool,
    source: Path | None,
    form: str,
    library: Path | None,
    is_json: bool,
) -> None:
    """Your own lists of papers: without a name all of them, with one its papers."""
    if name is None and (add or remove or rename is not None or is_delete):
        raise click.UsageError("Say which list: orrery papers lists NAME …")
    if is_delete and (add or remove or rename is not None):
        raise click.UsageError("--delete stands alone.")
    if form in ("rss", "atom") and name is None:
        raise click.UsageError(f"--form {form} takes one list: orrery papers lists NAME --form {form}.")
    from orrery.cli.own_library import open_library
    from orrery.evidence.feed.lists import delete_list, get_list, read_lists

    with open_library(library) as store:
        with store.transaction():
            if source:
                _import(store, source)
            if name is not None and is_delete:
                delete_list(store, name)
                name = None
            elif name is not None:
                name = _changed(store, name, add, remove, rename)
        lists = read_lists(store) if name is None else (get_list(store, name),)
        _print(store, lists, form, is_json)


def _import(store: "Store", source: Path) -> None:
    from orrery.evidence.feed.lists import merge_lists
    from orrery.evidence.feed.marks_file import read_marks_file
    from orrery.evidence.find.bibtex_file import read_bibtex

    is_bibtex = source.suffix.casefold() == ".bib"
    merge_lists(store, read_bibtex(source, source.stem) if is_bibtex else read_marks_file(source).lists)


def _changed(store: "Store", name: str, add: tuple[str, ...], remove: tuple[str, ...], rename: str | None) -> str:
    """Change a list; its name from now on. Papers to add make one where there is none."""
    from datetime import date

    from orrery.evidence.feed.lists import add_papers, make_list, read_lists, remove_papers, rename_list
    from orrery.evidence.understanding.paper_lookup import marked_as

    if add:
        if name.casefold() not in {one.name.casefold() for one in read_lists(store)}:
            make_list(store, name)
        add_papers(store, name, [marked_as(store, key) for key in add], date.today())
    if remove:
        remove_papers(store, name, [marked_as(store, key) for key in remove])
    return name if rename is None else rename_list(store, name, rename)


def _print(store: "Store", lists: "tuple[PaperList, ...]", form: str, is_json: bool) -> None:
    from orrery.evidence.digest.feeds import atom_of, rss_of
    from orrery.evidence.digest.list_feed import cited_lists, feed_of_list
    from orrery.evidence.feed.marks import Marks
    from orrery.evidence.feed.marks_file import marks_json
    from orrery.evidence.understanding.paper_lookup import title_of

    titles = {id: title_of(store, id) for one in lists for id in one.ids}
    if is_json:
        from orrery.cli.output import print_json

        found: dict[str, Any] = {"lists": marks_json(Marks(lists=lists))["lists"], "titles": titles}
        print_json(found | ({"bibtex": cited_lists(store, lists)} if form == "bibtex" else {}))
    elif form == "bibtex":
        print("\n\n".join(cited_lists(store, lists)))
    elif form in ("rss", "atom"):
        print((rss_of if form == "rss" else atom_of)(feed_of_list(store, lists[0])), end="")
    else:
        _print_text(lists, titles)


def _print_text(lists: "tuple[PaperList, ...]", titles: dict[str, str]) -> None:
    from orrery.cli.output import console

    out = console()
    if not lists:
        out.print("No list yet: orrery papers lists NAME --add KEY makes one.", markup=False)
    for one in lists:
        out.print(f"{one.name}: {len(one.papers)} paper{'' if len(one.papers) == 1 else 's'}", markup=False)
        for id, day in one.papers if len(lists) == 1 else ():
            out.print(f"  {id}  {day}  {titles[id]}", markup=False)
