"""``orrery experiment``: questions answered by running or training something small on this machine."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import with_files
from orrery.cli.output import print_json
from orrery.cli.question import settings_from

EXAMPLES = """\b
Examples:
  orrery experiment                             every experiment, a line each
  orrery experiment fp4-recipes                 train under each four-bit recipe
  orrery experiment fp8-and-back --steps 50 --seed 1 --json
  orrery experiment compressed-saddle --set workers=4,40 --set keep=0.1 --seeds 3 --out curves.svg
  orrery experiment mono-forward --data mine.npz --device l4
  orrery experiment --scenario mine.toml        from a file: experiment = "mono-forward", set = ["widths=16"], …"""


@click.command("experiment", epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option("--seed", type=int, default=None, help="Of data, first weights and rounding (default 0).")
@click.option("--seeds", type=int, default=None, help="Runs from that seed on: means, and bands (default 1).")
@click.option("--steps", type=int, default=None, help="Optimizer steps of each run.")
@click.option("--set", "sizes", multiple=True, metavar="NAME=VALUE", help="A size of the experiment; repeat for more.")
@click.option(
    "--data", default=None, metavar="FILE", help="Your own arrays (.npz) or table (.csv), where it reads them."
)
@click.option("--device", default=None, metavar="NAME", help="What to price it on, where the experiment does.")
@click.option("--deployment", default=None, metavar="FILE", help="A deployment's scenario, where it reads one.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Write the answer to .json, curves to .svg.")
@with_files
def command(
    name: str | None,
    sizes: tuple[str, ...],
    scenario_file: Path | None,
    save_scenario: Path | None,
    out: Path | None,
    is_json: bool,
    **flags: Any,
) -> None:
    """Train small networks or predictors on this machine; without NAME, what there is to run."""
    from orrery.scenario.experiment import list_experiments

    if name is None and scenario_file is None:
        known = list_experiments()
        answer, table = known.to_json(), known
    else:
        from orrery.cli.progress import bar
        from orrery.scenario.experiment_asked import read_question, run_asked

        flags |= {"experiment": name, "set": sizes or None}
        question = read_question(settings_from(flags, scenario_file))
        with bar(str(question.experiment)) as tell:
            found = run_asked(question, tell)
        if save_scenario:
            question.save(save_scenario)
        answer, table = found.to_json(), found.table()
        if out is not None:
            from orrery.base.errors import ScenarioError
            from orrery.base.files import write_atomically

            if out.suffix not in (".json", ".svg"):
                raise ScenarioError(f"out: got {out.name}; end it in .json or .svg.")
            import json

            write_atomically(out, found.svg() if out.suffix == ".svg" else json.dumps(answer, indent=2))
    if is_json:
        print_json(answer)
        return
    from orrery.cli.tables import print_facts

    print_facts(table)
