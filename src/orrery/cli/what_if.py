"""``orrery what-if``: what a technique would do to a deployment."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.errors import ScenarioError
from orrery.cli.options import deployment_flags, scenario_from
from orrery.cli.report_file import check_report, with_report, write_made

if TYPE_CHECKING:
    from orrery.scenario.what_if import WhatIf

EXAMPLES = """\b
Examples:
  orrery what-if token-split --model llama-3.1-70b --device h100-sxm --tp 4 --input-tokens 1024 --output-tokens 256
      --concurrency 32
  orrery what-if fp8-weights fp8-kv-cache --scenario mine.toml --metric cost --json
  orrery what-if --all --scenario mine.toml --metric tpot
  orrery what-if zero-bubble-h1 --model llama-3.1-70b --device h100-sxm --devices 64 --tp 8 --pp 4 --global-batch 128
      --seq-len 4096 --break-even global_batch"""


@click.command("what-if", epilog=EXAMPLES)
@click.argument("techniques", nargs=-1, metavar="TECHNIQUE…")
@click.option("--all", "is_all", is_flag=True, help="Every technique, ranked by what it would bring.")
@click.option(
    "--metric",
    default="",
    metavar="NAME",
    help="What they are ranked by: ttft, tpot, latency (default where requests arrive at a rate), throughput (default "
    "otherwise), cost (default of plan), energy, memory; of training step_time (default), throughput, cost, energy, "
    "memory, run_time.",
)
@click.option(
    "--break-even",
    "inputs",
    multiple=True,
    metavar="INPUT",
    help="Look along this input for where it begins to help (default: load, lengths and the technique's own; with "
    "--all none); repeat for more.",
)
@click.option("--simulated", "is_simulated", is_flag=True, help="Simulate where a closed form would answer too.")
@with_report
@deployment_flags
def command(
    techniques: tuple[str, ...],
    is_all: bool,
    metric: str,
    inputs: tuple[str, ...],
    is_simulated: bool,
    report: Path | None,
    scenario_file: Path | None,
    save_scenario: Path | None,
    is_json: bool,
    **flags: Any,
) -> int:
    """Effect of TECHNIQUE on your deployment: without it, with it, and the difference with its 80 % interval.

    The deployment is a scenario file, or the flags of estimate, simulate, plan (with --max-devices) or train (with
    --global-batch). Both sides have the same seeds, and are what those commands answer; errors that both share cancel.
    `orrery show techniques` lists what can be asked.
    """
    if is_all == bool(techniques):
        raise ScenarioError("what-if: name techniques (`orrery show techniques`), or write --all.")
    check_report(report, scenario_file)
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import print_json, print_notes
    from orrery.cli.progress import bar, patience
    from orrery.scenario.what_if import EVERY, what_if

    with patience(), bar("techniques") as tell:
        answer = what_if(
            EVERY if is_all else techniques,
            scenario,
            metric=metric,
            is_simulated=is_simulated,
            break_even=tuple(name.replace("-", "_") for name in inputs) or None,
            on_progress=tell,
        )
    if report is not None:
        from orrery.reports.compared import what_if_report

        write_made(report, what_if_report(answer))
    if is_json:
        print_json(answer.to_json())
    else:
        from orrery.cli.what_if_views import print_each, print_ranking

        (print_ranking if is_all else print_each)(answer)
    print_notes(answer.notes)
    return _code(answer.results)


def _code(results: "tuple[WhatIf, ...]") -> int:
    """0 where anything was computed; 2 where nothing applies, 3 where nothing fits."""
    outcomes = {r.outcome for r in results}
    if outcomes & {"changes", "no effect", "makes it fit"}:
        return 0
    return 3 if "infeasible" in outcomes else 2
