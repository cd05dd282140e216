"""``orrery reproduce``: papers' claims, run again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json, on_ray

if TYPE_CHECKING:
    from orrery.evidence.judge.run import ReproductionRun

EXAMPLES = """\b
Examples:
  orrery reproduce infinite-llm holmes
  orrery reproduce --layer moe --json
  orrery reproduce --all
Results are kept as papers are finished: the same command goes on where a stopped one was, unless --fresh."""

FAILED = 1
"""Exit code where a paper could not be run again."""


@click.command("reproduce", epilog=EXAMPLES)
@click.argument("keys", nargs=-1, metavar="[KEY]...")
@click.option("--layer", default="", metavar="NAME", help="Every paper of this layer, as orrery papers list names it.")
@click.option("--all", "is_all", is_flag=True, help="Every paper of the library.")
@click.option("--workers", default=0, metavar="N", type=click.IntRange(0, 256), help="Processes; default: one a core.")
@on_ray
@click.option("--fresh", is_flag=True, help="Run everything again, whatever a stopped run has left.")
@click.option(
    "--write/--no-write",
    "is_written",
    default=False,
    help="Write the checked-in scorecard and its page, in a source checkout; default: nothing is written there.",
)
@as_json
def command(
    keys: tuple[str, ...],
    layer: str,
    is_all: bool,
    workers: int,
    ray: str,
    fresh: bool,
    is_written: bool,
    is_json: bool,
) -> int:
    """Run papers' claims again: predicted, reported, their ratio, the verdict, and why."""
    import sys
    from dataclasses import replace

    from orrery.cli.output import print_json
    from orrery.cli.progress import bar
    from orrery.evidence.judge.claim_result import judge
    from orrery.evidence.judge.publish import is_checkout, publish
    from orrery.evidence.judge.run import JOURNAL, PaperResult, rerun
    from orrery.evidence.paper_file import get_paper, paper_keys
    from orrery.evidence.prediction import NotInstalled, has_predictions

    chosen_keys = chosen(keys, layer, is_all)
    shipped = [key for key in chosen_keys if key in paper_keys()]
    if shipped and not has_predictions():
        raise NotInstalled
    if is_written and not is_checkout():
        raise click.UsageError("--write needs a source checkout, where the scorecard is kept; leave it out.")
    if fresh:
        JOURNAL.unlink(missing_ok=True)
    with bar("Papers") as progress:
        found = rerun(shipped, num_workers=workers, journal=JOURNAL, progress=progress, ray=ray)
    own = {key: PaperResult(judged=judge(get_paper(key)), curve=None) for key in chosen_keys if key not in shipped}
    answer = replace(found, papers={**found.papers, **own})
    if is_json:
        print_json(
            {
                "claims": [j.to_json() for j in answer.judged],
                "failed": [{"paper": key, "because": why} for key, why in found.failed.items()],
            }
        )
    else:
        print_claims(answer)
    if found.num_resumed:
        print(f"{found.num_resumed} papers had been run already; --fresh runs them again.", file=sys.stderr)
    if shipped and is_written:  # never the reader's own papers
        text = publish(found.papers)
        print("\n".join((*text, f"Wrote the scorecard and docs/papers.md; {len(text)} claims moved.")), file=sys.stderr)
    for key, why in found.failed.items():
        print(f"orrery: {key} could not be run again: {why}", file=sys.stderr)
    return FAILED if found.failed else 0


def chosen(keys: Sequence[str], layer: str, is_all: bool) -> tuple[str, ...]:
    """The papers that are meant, in the library's order, then the reader's own; unknown names get the nearest one."""
    from orrery.base.errors import UnknownName
    from orrery.evidence.paper_file import get_paper, own_paper_keys, paper_keys

    known = paper_keys()
    if sum((bool(keys), bool(layer), is_all)) != 1:
        raise click.UsageError("Write one of: keys of papers (orrery papers list), --layer NAME, or --all.")
    for key in keys:
        get_paper(key)
    if layer:
        layers = sorted({get_paper(key).layer for key in known})
        if layer not in layers:
            raise UnknownName("layer", layer, layers, "orrery papers list")
    shipped = [key for key in known if is_all or key in keys or (layer and get_paper(key).layer == layer)]
    return (*shipped, *(key for key in own_paper_keys() if key in keys))


def print_claims(found: "ReproductionRun") -> None:
    """A table of what was run again, what is missing for the rest, and the count."""
    from collections import Counter

    from rich.text import Text

    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet
    from orrery.evidence.judge.page import predicted, reported
    from orrery.evidence.verdict import VERDICTS

    out = console()
    table = Sheet()
    for column, minor in (("paper", 0), ("claim", 0), ("reported", 1), ("predicted", 0), ("ratio", 0), ("verdict", 0)):
        is_words = column in ("paper", "claim", "reported")
        table.add_column(column, justify="left" if column != "ratio" else "right", wraps=is_words, minor=minor)
    table.add_column("because", justify="left", minor=2)
    for j in found.judged:
        ratio = "" if j.ratio is None else f"{j.ratio:.2f}"
        style = STYLES.get(j.verdict, "dim")
        table.add_row(j.paper, j.claim.id, reported(j), predicted(j), ratio, Text(j.verdict, style), j.why)
    if found.judged:
        out.print(table)
    count = Counter(j.verdict for j in found.judged)
    out.print(", ".join(f"{count[word]} {word}" for word in VERDICTS))


STYLES = {"reproduced": "green", "not reproduced": "red"}
