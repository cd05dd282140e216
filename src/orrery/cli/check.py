"""``orrery check``: score tables of measured runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.base.units import percent
from orrery.cli.options import as_json

if TYPE_CHECKING:
    from orrery.evidence.report import Report

EXAMPLES = """\b
Examples:
  orrery check runs.csv
  orrery check runs.csv more.csv.gz --by device,engine --out scored.csv
  orrery check runs.csv --by campaign --exclude 'campaign=spring*' --exclude engine=trtllm
The columns are those of the documentation's page on measured tables; unknown columns are carried through."""


@click.command("check", epilog=EXAMPLES)
@click.argument("tables", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="TABLE...")
@click.option(
    "--by",
    default="",
    metavar="COLUMN,...",
    help="Group the errors by these columns too, or by campaign (source, load, engine, device) and side (fit, test).",
)
@click.option(
    "--exclude", multiple=True, metavar="COLUMN=PATTERN", help="Leave out rows whose column is so; may be repeated."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE.csv", help="Write the rows with their predictions."
)
@as_json
def command(tables: tuple[Path, ...], by: str, exclude: tuple[str, ...], out: Path | None, is_json: bool) -> int:
    """Score tables of measured runs (CSV, CSV.GZ): predict every row and print the error of each metric."""
    import sys

    from orrery.cli.output import print_json
    from orrery.evidence.check import check
    from orrery.scenario.resolve import words

    def tell(done: int, total: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done:,} of {total:,} rows", end="" if done < total else "\n", file=sys.stderr, flush=True)

    report = check(tables, by=words(by), on_progress=tell, out=out, exclude=exclude)
    if is_json:
        print_json(report.to_json())
    else:
        print_report(report)
    return 0


def print_report(report: "Report") -> None:
    """Errors by metric and group, then what was declined and why."""
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet
    from orrery.evidence.report import most_first

    out = console()
    table = Sheet(title=f"{report.rows:,} rows")
    table.add_column("group", justify="left", wraps=True)
    table.add_column("metric", justify="left")
    for column in ("rows", "median", "mean", "p90", "bias", "in 80 %"):
        table.add_column(column)
    for group in report.groups:
        text, score = ", ".join(f"{k} {v}" for k, v in group.by.items()) or "all", group.score
        errors = (score.median_abs_error_frac, score.mean_abs_error_frac, score.p90_abs_error_frac, score.bias_frac)
        table.add_row(text, group.metric, f"{score.rows:,}", *(_percent(e) for e in (*errors, score.covered_80_frac)))
    out.print(table)
    for where, rows in report.excluded.items():
        out.print(f"excluded {rows:,}: {where}", markup=False)
    for reason, rows in most_first(report.declined):
        out.print(f"declined {rows:,}: {reason}", markup=False)
    for what, rows in most_first(report.assumed):
        out.print(f"assumed for {rows:,}: {what}", markup=False)
    if report.beat_bound:
        out.print(f"{report.beat_bound:,} rows were measured faster than the data sheet allows; they are scored.")


def _percent(value: float | None) -> str:
    return "" if value is None or value != value else percent(value, 1)
