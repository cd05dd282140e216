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


LEAST_TITLE, OTHER_COLUMNS = 24, 92
"""Of a line: what a title gets at least, and what stands before it."""


@click.command("list", epilog=EXAMPLES)
@filter_flags
@as_json
def COMMAND(is_json: bool, **filters: str) -> None:  # noqa: N802 - the seam that papers looks for
    """Papers by layer, device, technique, year, metric, kind or fit; all of them without a flag."""
    from orrery.cli.output import print_json
    from orrery.evidence.find.filters import Filters, kept
    from orrery.evidence.find.shelf import library

    every = library()
    found = kept(every, Filters(**filters))
    if is_json:
        from dataclasses import asdict

        print_json({"papers": [asdict(document) for document in found], "num_all": len(every)})
    else:
        print_papers(found, len(every))


def print_papers(found: Sequence["Document"], num_all: int) -> None:
    """A line a paper, by layer and year."""
    from rich.box import SIMPLE
    from rich.table import Table

    from orrery.cli.output import console

    out = console()
    table = Table(box=SIMPLE, pad_edge=False, padding=(0, 1, 0, 0))
    for column in ("key", "year", "layer", "kind", "fit", "claims"):
        table.add_column(column, justify="right" if column == "claims" else "left", no_wrap=True)
    table.add_column("title", no_wrap=True, max_width=max(LEAST_TITLE, out.width - OTHER_COLUMNS))
    for d in sorted(found, key=lambda d: (d.layer, d.year or 0, d.key)):
        table.add_row(d.key, str(d.year or ""), d.layer, d.kind, d.fit, str(len(d.claims) or ""), d.title)
    if found:
        out.print(table)
    out.print(f"{len(found)} of {num_all} papers; orrery papers show KEY tells of one.", markup=False)
