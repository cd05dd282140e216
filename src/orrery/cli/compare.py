"""``orrery compare``: several designs side by side, with paired errors."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.errors import ScenarioError
from orrery.cli.options import deployment_flags, typed_flags
from orrery.cli.report_file import check_report, with_report, write_made

if TYPE_CHECKING:
    from orrery.scenario.compare import Design, DesignsAnswer

EXAMPLES = """\b
Examples:
  orrery compare --model llama-3.1-70b --device h100-sxm --tp 4 --input-tokens 1024 --output-tokens 256
      --concurrency 32 --with device=h200-sxm --with "weights=fp8 kv=fp8"
  orrery compare mine.toml theirs.toml --report compared.html
  orrery compare mine.toml --with tp=8 --with "tp=8 concurrency=64" --simulated"""


@click.command("compare", epilog=EXAMPLES)
@click.argument("files", nargs=-1, metavar="[FILE.toml]…", type=click.Path(path_type=Path))
@click.option(
    "--with",
    "variants",
    multiple=True,
    metavar="NAME=VALUE…",
    help="One more design: the first with these settings, several in quotes; repeat for more designs.",
)
@click.option("--simulated", "is_simulated", is_flag=True, help="Simulate each design, on the same requests.")
@with_report
@deployment_flags
def command(
    files: tuple[Path, ...],
    variants: tuple[str, ...],
    is_simulated: bool,
    report: Path | None,
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    **flags: Any,
) -> int:
    """Designs side by side: what each does, and how far it is from the first, with an 80 % interval.

    Designs are scenario files, or the flags of estimate, simulate, plan (with --max-devices) or train (with
    --global-batch), and for each --with the first design with other settings. Errors that two designs share cancel.
    """
    from orrery.cli.output import print_json, print_notes
    from orrery.cli.progress import bar, patience
    from orrery.scenario.compare import compare, question_of, refuse_unread, settings_in
    from orrery.scenario.file import read_settings
    from orrery.scenario.file import save_scenario as save
    from orrery.scenario.merge import merged
    from orrery.scenario.schema import read_scenario

    check_report(report, scenario_file)
    if scenario_file:
        files = (scenario_file, *files)
    own = typed_flags(flags)
    if own and len(files) > 1:
        raise ScenarioError("compare: flags change one design; give one file with them, or --with for more designs.")
    read = [read_settings(file) for file in files]
    for file, settings in zip(files, read, strict=True):
        read_scenario(settings, where=str(file))  # what is wrong in a file is told with its name
    bases = [merged(settings, own) for settings in read] or ([own] if own else [])
    if not bases:
        raise ScenarioError(
            "Nothing is asked yet: give scenario files, or --model and --device and --with; see --help."
        )
    others = [settings_in(text) for text in variants]
    designs = [read_scenario(settings) for settings in (*bases, *(merged(bases[0], other) for other in others))]
    if save_scenario:
        save(designs[0], save_scenario)
    question = question_of(designs, is_simulated=is_simulated)
    for settings in (own, *others):  # a file may hold settings of other commands
        refuse_unread(question, designs[0], settings)
    names = [*(file.stem for file in files), *variants] if len(files) > 1 else []
    with patience(), bar("designs") as tell:
        answer = compare(designs, names=names, is_simulated=is_simulated, on_progress=tell)
    if report is not None:
        from orrery.reports.compared import compare_report

        write_made(report, compare_report(answer))
    if is_json:
        print_json(answer.to_json())
    else:
        print_designs(answer)
    print_notes(answer.notes)
    return 0 if any(design.side.figures for design in answer.designs) else 3


def print_designs(answer: "DesignsAnswer") -> None:
    """Figures of every design, then how far each is from the first."""
    from orrery.base.units import si
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out = console()
    metrics = answer.metrics
    drawn = Sheet("design", *(m.words for m in metrics))
    for design in answer.designs:
        values = [design.side.figures.get(m.name) for m in metrics]
        texts = ["-" if v is None else si(v, m.unit) for m, v in zip(metrics, values, strict=True)]
        drawn.add_row(design.name, *texts)
    out.print(drawn)
    for design in answer.designs[1:]:
        out.print()
        out.print(f"{design.name}, beside {answer.designs[0].name}", markup=False, style="bold")
        for line in _lines(design):
            out.print(f"  {line}", markup=False)


def _lines(design: "Design") -> list[str]:
    from orrery.scenario.compare import in_words
    from orrery.scenario.what_if.metrics import BY_NAME

    if design.side.infeasible is not None:
        return [f"Infeasible: {design.side.infeasible}"]
    return [f"{BY_NAME[name].words}: {in_words(d)}" for name, d in design.difference.items()]
