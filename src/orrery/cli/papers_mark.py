"""``orrery papers mark``: what a reader has read, found good, and follows."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import with_library

if TYPE_CHECKING:
    from orrery.evidence.feed.marks import Marks

EXAMPLES = """\b
Examples:
  orrery papers mark 2401.09670 --read --upvote
  orrery papers mark --follow layer:serving --follow technique:chunked-prefill --follow words:'KV cache offloading'
  orrery papers mark --json > marks.json     everything that is marked, in a file
  orrery papers mark --import marks.json     and into another library, beside what is marked there
  orrery papers mark --bibtex > good.bib     the papers that you upvoted, to cite"""


@click.command("mark", epilog=EXAMPLES)
@click.argument("keys", nargs=-1, metavar="[KEY...]")
@click.option("--read/--unread", "is_read", default=None, help="Read papers go last.")
@click.option("--upvote/--no-upvote", "is_upvoted", default=None, help="Papers like upvoted ones go first.")
@click.option("--follow", multiple=True, metavar="KIND:NAME", help="layer:NAME, technique:NAME or words:'…'.")
@click.option("--unfollow", multiple=True, metavar="KIND:NAME", help="No longer.")
@click.option(
    "--import", "source", type=click.Path(path_type=Path), metavar="FILE", help="Add the marks that --json wrote."
)
@click.option("--bibtex", "is_bibtex", is_flag=True, help="Only the upvoted papers, as entries of a BibTeX file.")
@with_library
@as_json
def command(
    keys: tuple[str, ...],
    is_read: bool | None,
    is_upvoted: bool | None,
    follow: tuple[str, ...],
    unfollow: tuple[str, ...],
    source: Path | None,
    is_bibtex: bool,
    library: Path | None,
    is_json: bool,
) -> None:
    """Mark papers by key, arXiv id or title, and say what you follow; without anything to mark, list the marks."""
    if keys and is_read is None and is_upvoted is None:
        raise click.UsageError("Say how: --read, --unread, --upvote or --no-upvote.")
    if not keys and (is_read is not None or is_upvoted is not None):
        raise click.UsageError("Say which papers: arXiv ids, titles, or keys of paper files.")
    from orrery.cli.own_library import open_library
    from orrery.evidence.feed import marks
    from orrery.evidence.feed.lists import merge_lists
    from orrery.evidence.feed.marks_file import marks_json, read_marks_file
    from orrery.evidence.understanding.paper_lookup import check_followed, cited, marked_as, title_of

    with open_library(library) as store:
        followed, dropped = ([marks.read_followed(text) for text in texts] for texts in (follow, unfollow))
        added = read_marks_file(source) if source else marks.Marks()
        followed += marks.followed(added)
        check_followed(followed)
        ids = [marked_as(store, key) for key in keys]
        with store.transaction():
            marks.mark(store, added.read, is_read=True)
            marks.mark(store, added.upvoted, is_upvoted=True)
            marks.mark(store, ids, is_read=is_read, is_upvoted=is_upvoted)
            marks.follow(store, followed)
            marks.follow(store, dropped, is_on=False)
            merge_lists(store, added.lists)
        found = marks.read_marks(store)
        titles = {id: title_of(store, id) for id in sorted(found.read | found.upvoted)}
        citations = [text for id in sorted(found.upvoted) if (text := cited(store, id))] if is_bibtex else []
    if is_json:
        from orrery.cli.output import print_json

        print_json({"bibtex": citations} if is_bibtex else {**marks_json(found), "titles": titles})
    elif is_bibtex:
        print("\n\n".join(citations))
    else:
        _print(found, titles)


def _print(found: "Marks", titles: dict[str, str]) -> None:
    from orrery.cli.output import console

    out = console()
    for what, names in (("layers", found.layers), ("techniques", found.techniques), ("words", found.words)):
        out.print(f"follows {what}: {', '.join(names) or 'none'}", markup=False)
    for id, title in titles.items():
        text = [word for word, ids in (("read", found.read), ("upvoted", found.upvoted)) if id in ids]
        out.print(f"{id}  {', '.join(text)}  {title}", markup=False)
