"""``orrery calibrate device``: measure this machine."""

from pathlib import Path

import click

from orrery.cli.options import as_json

PATIENCE_S = 2.0
"""As in ``calibrate.measure.quiet``, which imports NumPy; help must be instant."""

EXAMPLES = """\b
Examples:
  orrery calibrate device --out my-box.toml
  orrery calibrate device --out my-box.toml --measurements 10 --backend numpy
  orrery calibrate device --out my-gpu.toml --backend pytorch:cuda:0 --formats bf16,fp8 --minutes 10 --replace
Every other command then takes --device my-box.toml, with --engine numpy (or pytorch)."""


@click.command("device", epilog=EXAMPLES)
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="FILE.toml", help="The device file.")
@click.option(
    "--backend", default="", metavar="NAME", help="numpy, pytorch or pytorch:DEVICE; blank: a GPU, else NumPy."
)
@click.option(
    "--formats", default="", metavar="FORMAT,...", help="What to multiply in; blank: all that the backend can."
)
@click.option("--minutes", type=float, default=5.0, show_default=True, help="How long to measure.")
@click.option("--measurements", type=int, default=0, metavar="N", help="Stop after so many instead (ten will do).")
@click.option("--exchange/--no-exchange", "has_exchange", default=True, help="Measure exchanges between processes too.")
@click.option("--patience", default=PATIENCE_S, show_default=True, metavar="SECONDS", help="Wait for a quiet moment.")
@click.option("--table", type=click.Path(path_type=Path), metavar="FILE.csv", help="Write the measurements as a table.")
@click.option("--replace", "is_replaced", is_flag=True, help="Replace files that are there already.")
@as_json
def command(
    out: Path,
    backend: str,
    formats: str,
    minutes: float,
    measurements: int,
    has_exchange: bool,
    patience: float,
    table: Path | None,
    is_replaced: bool,
    is_json: bool,
) -> None:
    """Measure this machine, and write it down as a device that every command accepts.

    Each measurement is the one that leaves the least doubt about the kernels of a model's step.
    """
    from orrery.calibrate.device.calibrate import calibrate_device
    from orrery.cli.output import print_json
    from orrery.cli.progress import bar
    from orrery.scenario.resolve import words

    with bar("measuring") as tell:
        found = calibrate_device(
            out,
            backend=backend,
            formats=words(formats),
            minutes=minutes,
            measurements=measurements,
            has_exchange=has_exchange,
            patience_s=patience,
            replace_file=is_replaced,
            table=table or "",
            on_progress=tell,
        )
    if is_json:
        print_json(found.to_json())
        return
    from orrery.cli.tables import print_facts

    print_facts(found.table())
