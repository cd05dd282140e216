"""``orrery train``: one training configuration, or with ``--plan`` the best ones."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import scenario_flags, scenario_from

EXAMPLES = """\b
Examples:
  orrery train --model llama-3.1-8b --device h100-sxm --devices 8 --global-batch 128 --seq-len 8192 --sharding fsdp
  orrery train --model gpt3-175b --device h100-sxm --devices 1024 --tp 8 --pp 8 --global-batch 1024 --seq-len 2048
  orrery train --model gpt3-175b --device h100-sxm --devices 4096 --global-batch 4096 --seq-len 2048 --plan
  orrery train --scenario job.toml --train-tokens 15e12 --node-mtbf-s 2e8 --checkpoint lazy --json"""


@click.command("train", epilog=EXAMPLES)
@click.option("--plan", "is_plan", is_flag=True, help="Search everything that is left open for the fastest layouts.")
@scenario_flags("train")
def COMMAND(  # noqa: N802 - the seam that main looks for
    scenario_file: Path | None, save_scenario: Path | None, is_json: bool, is_plan: bool, **flags: Any
) -> int:
    """Training: step time by part, utilisation, memory by rank, energy, money, and days to so many tokens.

    With --plan every layout flag and --micro-batch are optional, and what is left open is searched exhaustively.
    """
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import CannotBe

    if is_plan:
        from orrery.cli.progress import bar
        from orrery.scenario.train_plan import train_plan

        with bar("families of layouts") as report:
            answer = train_plan(scenario, progress=report)
        if is_json:
            print_json(answer.to_json())
        else:
            from orrery.cli.train_views import print_train_plan

            print_train_plan(answer)
        print_notes(answer.notes)
        return 3 if answer.infeasible else 0
    from orrery.scenario.train import train

    one = train(scenario)
    if isinstance(one, CannotBe):
        return print_infeasible(one, is_json)
    if is_json:
        print_json(one.to_json())
    else:
        from orrery.cli.train_views import print_train

        print_train(one)
    print_notes(one.notes)
    return 0
