"""``orrery calibrate``: make answers fit your own machine and your own runs."""

import click

from orrery.cli.lazy import LazyGroup

COMMANDS = {
    "device": "Measure this machine, and write it down as a device that every command accepts.",
    "runs": "Correct an engine's or framework's constants by your own benchmark results and logs.",
    "compare": "Why a run is slower than predicted: the likely causes, ranked by how well each explains it.",
    "verify": "Predict real work on this machine, then do it: how close a calibrated device comes.",
}
"""Name -> the line in the list of commands; each lives in ``orrery.cli.calibrate_<name>``."""


class Calibrations(LazyGroup):
    """Modules of this folder that begin with ``calibrate_``."""

    lines, module = COMMANDS, "orrery.cli.calibrate_"


EXAMPLES = """\b
Examples:
  orrery calibrate device --out my-box.toml
  orrery estimate --model llama-3.2-1b --device my-box.toml --engine numpy --weights fp32 \\
      --input-tokens 128 --output-tokens 32 --batch 1
  orrery calibrate compare my-runs.csv --json"""


@click.command("calibrate", cls=Calibrations, epilog=EXAMPLES)
def command() -> None:
    """Make answers fit your own machine and your own runs, from a handful of measurements."""
