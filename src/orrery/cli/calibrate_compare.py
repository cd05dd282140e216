"""``orrery calibrate compare``: why runs are below the predicted number."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.units import percent
from orrery.calibrate.runs.settings import RUN_SETTINGS
from orrery.cli.question import question_flags, settings_from

if TYPE_CHECKING:
    from rich.console import Console

    from orrery.calibrate.compare.answer import CauseFit, Comparison

EXAMPLES = """\b
Examples:
  orrery calibrate compare my-runs.csv
  orrery calibrate compare bench/*.json --device h100-sxm --tp 4 --weights fp8
Several runs tell more than one: the same deployment at one request at a time, at some, and at many, with short and
with long prompts."""


@click.command("compare", epilog=EXAMPLES)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@question_flags(RUN_SETTINGS)
def command(
    files: tuple[Path, ...], scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any
) -> int:
    """Rank what may be wrong with runs that are slower than predicted, and say what to look at.

    FILES are measured tables, or results of any tool that `orrery calibrate runs` reads. What they do not say comes
    from flags.
    """
    from orrery.calibrate.compare.compare import compare_runs
    from orrery.cli.output import print_json, print_notes
    from orrery.cli.progress import bar

    user_settings = {key: str(value) for key, value in settings_from(flags, scenario_file).items()}
    if save_scenario:
        _save(save_scenario, user_settings)
    with bar("causes") as tell:
        answer = compare_runs(files, user_settings, on_progress=tell)
    if is_json:
        print_json(answer.to_json())
    else:
        print_comparison(answer)
    print_notes(f"declined {rows}: {reason}" for reason, rows in answer.declined.items())
    print_notes(f"assumed for {rows}: {what}" for what, rows in answer.assumed.items())
    return 0


def _save(path: Path, user_settings: dict[str, str]) -> None:
    import tomli_w

    from orrery.base.files import write_atomically

    write_atomically(path, tomli_w.dumps(user_settings))


def print_comparison(answer: "Comparison") -> None:
    """The verdict, every number beside its prediction, and, where something is wrong, what and where to look."""
    from orrery.cli.output import console

    out = console()
    out.print(f"[bold]{answer.verdict}[/]", highlight=False)
    out.print(answer.summary, markup=False)
    is_named = answer.nothing_frac < 0.5
    out.print(
        f"measured / predicted of {len(answer.cells)} numbers, slower to the right: o as predicted"
        + (", * with the causes that are named" if is_named else ""),
        markup=False,
    )
    for line in residual_lines(answer, min(out.width, 110)):
        out.print(line, markup=False, highlight=False)
    if not is_named:
        return
    _print_causes(out, answer)
    _print_first(out, answer.suspects[0])
    if answer.second is not None:
        out.print(f"\nAnd a second fault: {answer.second.title}: {answer.second.severity_said}", markup=False)
        _print_checks(out, answer.second)
    if (run := answer.next_run) is not None:
        from orrery.scenario.show import readable

        user_settings = [
            f"{readable(run.metric, v)} if {n}"
            for n, v in ((run.first, run.first_value), (run.second, run.second_value))
        ]
        out.print(f"\nWhat would tell them apart: {run.what}\n  {run.metric}: {', '.join(user_settings)}", markup=False)


def _print_causes(out: "Console", answer: "Comparison") -> None:
    """The ranked causes as bars, and those that cannot be it."""
    from orrery.cli.sheet import Sheet

    table = Sheet("cause", "evidence", "", "explains", left=2)
    table.add_column("severity", justify="left", wraps=True)
    for s in (s for i, s in enumerate(answer.suspects) if i < FEWEST_CAUSES or s.evidence_frac >= MIN_FRAC):
        table.add_row(
            s.cause,
            "#" * round(EVIDENCE_COLUMNS * s.evidence_frac),
            percent(s.evidence_frac),
            percent(s.explained_frac),
            s.severity_said,
        )
    out.print(table)
    if answer.excluded:
        out.print(f"Cannot be it here: {', '.join(answer.excluded)} (--json says why).", markup=False)


EVIDENCE_COLUMNS = 20
FEWEST_CAUSES, MIN_FRAC = 3, 0.01
"""Causes that are listed whatever their evidence, and the evidence that makes others worth a line."""


def _print_first(out: "Console", first: "CauseFit") -> None:
    """Print the evidence for and against the first cause, and where to look."""
    out.print(f"\n{first.title}. {first.shows}", markup=False)
    if first.not_told_from:
        out.print(f"These runs cannot tell it from {', '.join(first.not_told_from)}.", markup=False)
    for word, lines in (("for", first.speaks_for), ("against", first.speaks_against)):
        for line in lines:
            out.print(f"  {word}: {line}", markup=False)
    _print_checks(out, first)


def _print_checks(out: "Console", suspect: "CauseFit") -> None:
    for line in suspect.checks:
        out.print(f"  check: {line}", markup=False)


MAX_LINES = 24
WIDEST = 4.0
"""A number that is off by more stands at the edge."""


def residual_lines(answer: "Comparison", columns: int) -> list[str]:
    """A line a number: where measured over predicted lies between 1/4 and 4, on a logarithmic scale."""
    from math import log

    from orrery.cli.scatter import raster

    names = [f"{c.run} {c.metric}" for c in answer.cells]
    longest = max(map(len, names[:MAX_LINES]))
    width = max(20, columns - longest - 20) // 2 * 2
    is_named = answer.nothing_frac < 0.5
    lines: list[str] = []
    for name, cell in list(zip(names, answer.cells, strict=True))[:MAX_LINES]:
        both = (cell.slower_frac, cell.with_cause_frac) if is_named else (cell.slower_frac,)
        places = [0.0, *(max(-1.0, min(1.0, log(1.0 + f) / log(WIDEST))) for f in both)]
        drawn = raster(places, [0.0] * len(places), "|o*"[: len(places)], (width, 0), (-1.0, 1.0), (0.0, 0.0))[0]
        figures = " -> ".join(percent(f, is_signed=True) for f in both)
        lines.append(f"{name.ljust(longest)} [{drawn.ljust(width + 1)}] {figures}")
    if (more := len(answer.cells) - MAX_LINES) > 0:
        lines.append(f"… {more} more; --json lists every one")
    return lines
