"""``orrery papers add``: single papers into the library."""

import sys
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json
from orrery.cli.own_library import with_addresses, with_library, with_page_year

if TYPE_CHECKING:
    from orrery.evidence.feed.entry import Entry, Skipped

EXAMPLES = """\b
Examples:
  orrery papers add my-paper.toml            your own paper file; search, show and reproduce find it from then on
  orrery papers add 2401.09670 2403.02310    from arXiv
  orrery papers add saved-page.txt"""


@click.command("add", epilog=EXAMPLES)
@click.argument("items", nargs=-1, required=True, metavar="FILE.toml|ID|FILE...")
@click.option("--replace", is_flag=True, help="Put a paper file in the place of your earlier one.")
@with_page_year
@with_addresses("arxiv")
@with_library
@as_json
def command(
    items: tuple[str, ...],
    replace: bool,
    page_year: int | None,
    library: Path | None,
    is_json: bool,
    pause: float | None,
    arxiv_url: str,
) -> None:
    """Add papers: files of your own, ids of arXiv, or pages and feeds that you saved."""
    from orrery.cli.own_library import open_library, say_skipped
    from orrery.evidence.feed.entry import entry_json
    from orrery.evidence.feed.fetch import fetch_ids, keep_read
    from orrery.evidence.feed.file import read_file
    from orrery.evidence.feed.own import add_paper
    from orrery.evidence.feed.polite import reader_for

    ids, files = _sorted(items)
    today = date.today()
    own: dict[str, str] = {}
    entries: list[Entry] = []
    skipped: list[Skipped] = []
    with open_library(library) as store:
        for path in files:
            if path.suffix == ".toml":
                paper, target = add_paper(path, library, replaces=replace)
                own[paper.key] = str(target)
                continue
            found = keep_read(store, read_file(path, today, page_year), today)
            entries, skipped = [*entries, *found.entries], [*skipped, *found.skipped]
        if ids:
            found = fetch_ids(store, reader_for("arxiv", arxiv_url, pause), ids, today, arxiv_url)
            entries, skipped = [*entries, *found.entries], [*skipped, *found.skipped]
    say_skipped(skipped)
    for key, what in (*own.items(), *((entry.id, entry.title) for entry in entries)):
        print(f"{key}: {what}", file=sys.stderr if is_json else sys.stdout)
    if is_json:
        from dataclasses import asdict

        from orrery.cli.output import print_json

        print_json({"files": own, "papers": [entry_json(e) for e in entries], "skipped": [asdict(s) for s in skipped]})


def _sorted(items: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Path, ...]]:
    """Ids and files apart. Raises for what is neither."""
    from orrery.evidence.feed.extra import FeedError
    from orrery.evidence.feed.text import whole_arxiv_id

    files = tuple(Path(item) for item in items if Path(item).is_file())
    ids = tuple(dict.fromkeys(whole_arxiv_id(item) for item in items if not Path(item).is_file()))
    if "" in ids:
        wrong = next(item for item in items if not Path(item).is_file() and not whole_arxiv_id(item))
        raise FeedError(f"{wrong}: is neither a file nor an arXiv id such as 2401.09670.")
    return ids, files
