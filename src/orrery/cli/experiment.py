"""``orrery experiment``: questions answered by running or training something small on this machine."""

from pathlib import Path

import click

from orrery.cli.options import as_json
from orrery.cli.output import print_json

EXAMPLES = """\b
Examples:
  orrery experiment                             every experiment, a line each
  orrery experiment fp4-recipes                 train under each four-bit recipe
  orrery experiment fp8-and-back --steps 50 --seed 1 --json
  orrery experiment compressed-saddle --set workers=4,40 --set keep=0.1 --seeds 3 --out curves.svg
  orrery experiment mono-forward --data mine.npz --device l4"""


@click.command("experiment", epilog=EXAMPLES)
@click.argument("name", required=False)
@click.option("--seed", type=int, default=0, show_default=True, help="Of data, first weights and rounding.")
@click.option("--seeds", type=click.IntRange(min=1), default=1, help="Runs from that seed on: means, and bands.")
@click.option("--steps", type=click.IntRange(min=1), default=None, help="Optimizer steps of each run.")
@click.option("--set", "sizes", multiple=True, metavar="NAME=VALUE", help="A size of the experiment; repeat for more.")
@click.option(
    "--data", default=None, metavar="FILE", help="Your own arrays (.npz) or table (.csv), where it reads them."
)
@click.option("--device", default=None, metavar="NAME", help="What to price it on, where the experiment does.")
@click.option("--scenario", "scenario_file", type=click.Path(path_type=Path), default=None, help="A deployment's file.")
@click.option("--out", type=click.Path(path_type=Path), default=None, help="Write the answer to .json, curves to .svg.")
@as_json
def command(
    name: str | None,
    seed: int,
    seeds: int,
    steps: int | None,
    sizes: tuple[str, ...],
    data: str | None,
    device: str | None,
    scenario_file: Path | None,
    out: Path | None,
    is_json: bool,
) -> None:
    """Train small networks or predictors on this machine; without NAME, what there is to run."""
    from orrery.scenario.experiment import list_experiments, run_experiment

    if name is None:
        known = list_experiments()
        answer, table = known.to_json(), known
    else:
        from orrery.cli.progress import bar
        from orrery.scenario.file import read_settings

        with bar(name) as tell:
            found = run_experiment(
                name,
                seed=seed,
                seeds=seeds,
                steps=steps or 0,
                sizes=sizes,
                data=data,
                device=device,
                scenario=read_settings(scenario_file) if scenario_file else None,
                on_progress=tell,
            )
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
