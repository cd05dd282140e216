"""``orrery papers list``: papers that have a file, narrowed by what they are about."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json
from orrery.cli.paper_filters import filter_flags

if TYPE_CHECKING:
    from orrery.evidence.find.document import Document

EXAMPLES = """\b
Examples:
  orrery papers list
  orrery papers list --layer serving --device a100 --year 2024..
  orrery papers list --metric throughput_ratio --json"""


@click.command("list", epilog=EXAMPLES)
@filter_flags
@as_json
def command(is_json: bool, **filters: str) -> None:
    """Papers by layer, device, technique, year, metric, kind or fit; all of them without a flag."""
    from orrery.cli.output import print_json
    from orrery.evidence.find.filters import Filters, select
    from orrery.evidence.find.library_cache import library

    every = library()
    found = select(every, Filters(**filters))
    if is_json:
        from dataclasses import asdict

        print_json({"papers": [asdict(document) for document in found], "num_all": len(every)})
    else:
        print_papers(found, len(every))


def print_papers(found: Sequence["Document"], num_all: int) -> None:
    """A line a paper, by layer and year."""
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out = console()
    table = Sheet("key", "year", left=2)
    table.add_column("title", justify="left", wraps=True)
    for column, minor in (("layer", 1), ("claims", 2), ("kind", 3), ("fit", 4)):
        table.add_column(column, justify="right" if column == "claims" else "left", minor=minor)
    for d in sorted(found, key=lambda d: (d.layer, d.year or 0, d.key)):
        table.add_row(d.key, str(d.year or ""), d.title, d.layer, str(len(d.claims) or ""), d.kind, d.fit)
    if found:
        out.print(table)
    out.print(f"{len(found)} of {num_all} papers; orrery papers show KEY tells of one.", markup=False)
