"""``orrery calibrate verify``: predict real work on this machine, then do it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orrery.cli.options import as_json

if TYPE_CHECKING:
    from orrery.calibrate.truth.verify import Verified

EXAMPLES = """\b
Examples:
  orrery calibrate verify my-box.toml
  orrery calibrate verify my-box.toml --suite long --table measured.csv
  orrery calibrate verify my-box.toml --only products,decode --json"""


@click.command("verify", epilog=EXAMPLES)
@click.argument("device", type=click.Path(path_type=Path), metavar="DEVICE.toml")
@click.option("--suite", default="quick", show_default=True, help="tiny: seconds. quick: a minute. long: ten minutes.")
@click.option("--only", default="", metavar="GROUP,...", help="products, prefill, decode, exchange, server.")
@click.option("--table", type=click.Path(path_type=Path), metavar="FILE.csv", help="Write the measured rows.")
@click.option("--replace", "is_replaced", is_flag=True, help="Replace a table that is there already.")
@as_json
def command(device: Path, suite: str, only: str, table: Path | None, is_replaced: bool, is_json: bool) -> None:
    """Predict real work on a device that was measured on this machine, then do the work and show the errors.

    The work is NumPy's: products of unseen shapes, a small transformer's prefill and decode steps, an exchange between
    two processes, and a continuous-batching server under a Poisson load.
    """
    from orrery.calibrate.truth.verify import verify_device
    from orrery.cli.output import print_json
    from orrery.cli.progress import bar
    from orrery.scenario.resolve import words

    with bar("verifying") as tell:
        found = verify_device(
            device, suite=suite, groups=words(only), table=table or "", replace_file=is_replaced, on_progress=tell
        )
    if is_json:
        print_json(found.to_json())
        return
    print_verified(found)


def print_verified(found: "Verified") -> None:
    """Predicted beside measured, then the errors by group."""
    from orrery.cli.tables import print_facts
    from orrery.scenario.answer import to_json
    from orrery.scenario.show import Table

    rows = tuple(to_json(row) for row in found.rows)
    print_facts(Table(kind="cases", title="Predicted, then measured", rows=rows))
    print_facts(found.table())
