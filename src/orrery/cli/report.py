"""``orrery report``: what an engineer hands to the person who pays."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import as_json

EXAMPLES = """\b
Examples:
  orrery plan --model llama-3.1-70b --device h100-sxm --trace chat --slo ttft:1000 --slo tpot:50 --json > plan.json
  orrery report plan.json --out plan.html
  orrery report mine.toml --as simulate --out load.pdf --author "A. Engineer"
  orrery report mine.toml --sweep tp=1,2,4 --out sweep.html
  orrery report job.toml --as train-plan --json"""

ANSWERING = "Working out the answer, and what would change it: some seconds, more for a search over many layouts."

KINDS = "plan|estimate|simulate|capacity|sweep|train|train-plan"


@click.command("report", epilog=EXAMPLES)
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    multiple=True,
    help="Where to write it: .html or .pdf (printed by Chromium, Chrome or Edge). Repeat for both.",
)
@click.option(
    "--as",
    "kind",
    default="",
    metavar=KINDS,
    help="The question to ask of a scenario file (guessed where only one can be).",
)
@click.option("--sweep", "over", multiple=True, metavar="KEY=V1,V2,…", help="What a sweep varies; repeat for a grid.")
@click.option("--title", default="", metavar="TEXT", help="The report's title.")
@click.option("--author", default="", metavar="TEXT", help="Who hands it over.")
@as_json
def command(
    source: Path, out: tuple[Path, ...], kind: str, over: tuple[str, ...], title: str, author: str, is_json: bool
) -> int:
    """One report from a plan, an estimate, a simulation, a sweep or a training search.

    SOURCE is a scenario file, or what a command printed with --json. The report has the question, the answer with its
    interval, the alternatives, what would change the answer, where time, memory and money go, and every assumption
    with its source. It is one file that needs neither network nor script.
    """
    from orrery.cli.output import print_json
    from orrery.cli.progress import patience
    from orrery.reports.frame import Frame
    from orrery.reports.make import report_of
    from orrery.reports.source import read_source
    from orrery.reports.write import check_paths, write

    check_paths(out, source, is_needed=not is_json)
    report_source = read_source(source, kind, over)
    with patience(ANSWERING):
        report = report_of(report_source, Frame(title=title, author=author))
    write(report, out)
    if is_json:
        print_json(report.to_json())
    else:
        _say(report, out)
    return 0 if report.is_feasible else 3


def _say(report: Any, out: tuple[Path, ...]) -> None:
    """The answer in a sentence, and where the rest is."""
    click.echo(report.headline)
    for path in out:
        click.echo(f"{path}: {path.stat().st_size / 1e3:,.0f} kB", err=True)
