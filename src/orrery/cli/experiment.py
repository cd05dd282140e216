"""``orrery experiment``: questions answered by running or training something small on this machine."""

import click

from orrery.cli.options import as_json
from orrery.cli.output import print_json

EXAMPLES = """\b
Examples:
  orrery experiment                             every experiment, a line each
  orrery experiment fp4-recipes                 train under each four-bit recipe
  orrery experiment fp8-and-back --steps 50 --seed 1 --json"""


@click.command("experiment", epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option("--seed", type=int, default=0, show_default=True, help="Of data, first weights and rounding.")
@click.option("--steps", type=click.IntRange(min=1), default=None, help="Optimizer steps of each run.")
@as_json
def command(name: str | None, seed: int, steps: int | None, is_json: bool) -> None:
    """Train small networks or predictors on this machine; without NAME, what there is to run."""
    from orrery.scenario.experiment import list_experiments, run_experiment

    if name is None:
        known = list_experiments()
        answer, table = known.to_json(), known
    else:
        from orrery.cli.progress import bar

        with bar(name) as tell:
            found = run_experiment(name, seed=seed, steps=steps or 0, on_progress=tell)
        answer, table = found.to_json(), found.table()
    if is_json:
        print_json(answer)
        return
    from orrery.cli.tables import print_facts

    print_facts(table)
