"""``orrery calibrate device``: measure this machine."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from orrery.base.errors import ScenarioError
from orrery.cli.options import as_json

PATIENCE_S = 2.0
"""As in ``calibrate.measure.quiet``, which imports NumPy; help must be instant."""

MICROBENCHMARKS = "microbenchmarks"
OF_MODELS = ("out", "formats", "minutes", "measurements", "has_exchange", "patience")
"""Settings of the search over a model's kernels, which the microbenchmarks do not have."""
OF_MICROBENCHMARKS = ("only", "is_resumed")

EXAMPLES = """\b
Examples:
  orrery calibrate device --out my-box.toml
  orrery calibrate device --out my-box.toml --measurements 10 --backend numpy
  orrery calibrate device --out my-gpu.toml --backend pytorch:cuda:0 --formats bf16,fp8 --minutes 10 --replace
  orrery calibrate device --suite microbenchmarks --table micro.csv
  orrery calibrate device --suite microbenchmarks --only launch,copies --json
Every other command then takes --device my-box.toml, with --engine numpy (or pytorch)."""


@click.command("device", epilog=EXAMPLES)
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE.toml", help="The device file.")
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
@click.option(
    "--suite", default="", metavar=MICROBENCHMARKS, help="Latencies, rates and overheads instead of a device file."
)
@click.option("--only", default="", metavar="GROUP,...", help="Groups of microbenchmarks; blank: all.")
@click.option("--resume", "is_resumed", is_flag=True, help="Keep the microbenchmarks that --table has already.")
@as_json
@click.pass_context
def command(context: click.Context, is_json: bool, **settings: Any) -> None:
    """Measure this machine, and write it down as a device that every command accepts.

    Each measurement is the one that leaves the least doubt about the kernels of a model's step. With --suite
    microbenchmarks: latencies of memories and instructions, bandwidths, rates of tensor cores, launches and copies,
    each beside what the catalogue says of the device.
    """
    from orrery.cli.output import print_json
    from orrery.cli.tables import print_facts

    given = {name for name in settings if context.get_parameter_source(name) is not ParameterSource.DEFAULT}
    found = _microbenchmarks(settings, given) if settings["suite"] else _device(settings, given)
    if is_json:
        print_json(found.to_json())
        return
    print_facts(found.table())


def _device(settings: dict[str, Any], given: set[str]) -> Any:
    """The machine as a device file."""
    from orrery.calibrate.device.calibrate import calibrate_device
    from orrery.cli.progress import bar
    from orrery.scenario.resolve import words

    _refuse(given, OF_MICROBENCHMARKS, f"belongs to --suite {MICROBENCHMARKS}")
    if settings["out"] is None:
        raise ScenarioError(f"Write --out FILE.toml, the device file, or --suite {MICROBENCHMARKS}.")
    with bar("measuring") as tell:
        return calibrate_device(
            settings["out"],
            backend=settings["backend"],
            formats=words(settings["formats"]),
            minutes=settings["minutes"],
            measurements=settings["measurements"],
            has_exchange=settings["has_exchange"],
            patience_s=settings["patience"],
            replace_file=settings["is_replaced"],
            table=settings["table"] or "",
            on_progress=tell,
        )


def _microbenchmarks(settings: dict[str, Any], given: set[str]) -> Any:
    """The machine's microbenchmarks."""
    from orrery.base.errors import UnknownName
    from orrery.calibrate.micro.suite import measure_microbenchmarks
    from orrery.cli.progress import bar
    from orrery.scenario.resolve import words

    if settings["suite"] != MICROBENCHMARKS:
        raise UnknownName("suite", settings["suite"], (MICROBENCHMARKS,))
    _refuse(given, OF_MODELS, f"has no effect on --suite {MICROBENCHMARKS}; leave it out")
    with bar("measuring") as tell:
        return measure_microbenchmarks(
            backend=settings["backend"],
            only=words(settings["only"]),
            table=settings["table"] or "",
            replace_file=settings["is_replaced"],
            is_resumed=settings["is_resumed"],
            on_progress=tell,
        )


def _refuse(given: set[str], others: tuple[str, ...], why: str) -> None:
    """ScenarioError where a setting was given that means nothing here."""
    flags = {"has_exchange": "--exchange", "is_resumed": "--resume"}
    for name in others:
        if name in given:
            raise ScenarioError(f"{flags.get(name, f'--{name}')} {why}.")
