"""``orrery estimate``: one configuration."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import scenario_flags, scenario_from
from orrery.cli.report_file import ONLY_SERVING, check_report, with_report, write_report

EXAMPLES = """\b
Examples:
  orrery estimate --model llama-3.1-70b --device h100-sxm --tp 4 --input-tokens 900 --output-tokens 250 --batch 32
  orrery estimate --model ./config.json --device mi300x --input-tokens 512 --output-tokens 512 --batch 16 --json
  orrery estimate --model flux.1-dev --device h100-sxm --ulysses-degree 4 --num-inference-steps 28
  orrery estimate --scenario mine.toml --weights fp8 --report mine.html
  orrery estimate --scenario mine.toml --reasoning best-of-n --samples 1,4,16 --success 0.3 --verifier-accuracy 0.8"""


@click.command("estimate", epilog=EXAMPLES)
@with_report
@scenario_flags("estimate")
def command(
    scenario_file: Path | None, save_scenario: Path | None, is_json: bool, report: Path | None, **flags: Any
) -> int:
    """One configuration: how fast, how much memory, energy and money, and what limits it."""
    check_report(report, scenario_file)
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import Answer, InfeasibleAnswer
    from orrery.scenario.estimates import estimate

    answer = estimate(scenario)
    if not isinstance(answer, Answer | InfeasibleAnswer):
        check_report(report, refused=ONLY_SERVING)
    write_report(report, "estimate", scenario, answer=answer)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        from orrery.cli.estimate_views import PRINTERS

        PRINTERS[type(answer)](answer)
    print_notes(answer.notes)
    return 0
