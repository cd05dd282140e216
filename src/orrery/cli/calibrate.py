"""``orrery calibrate``: make answers fit your own machine and your own runs."""

from importlib import import_module

import click

COMMANDS = {
    "device": "Measure this machine, and write it down as a device that every command accepts.",
    "runs": "Correct an engine's or framework's constants by your own benchmark results and logs.",
    "compare": "Why a run is slower than predicted: the likely causes, ranked by how well each explains it.",
    "verify": "Predict real work on this machine, then do it: how close a calibrated device comes.",
}
"""Name -> the line in the list of commands; each lives in ``orrery.cli.calibrate_<name>``."""


class Calibrations(click.Group):
    """A group whose commands are modules of this folder."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        found: click.Command = import_module(f"orrery.cli.calibrate_{cmd_name}").COMMAND
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


EXAMPLES = """\b
Examples:
  orrery calibrate device --out my-box.toml
  orrery estimate --model llama-3.2-1b --device my-box.toml --engine numpy --weights fp32 \\
      --input-tokens 128 --output-tokens 32 --batch 1"""


@click.command("calibrate", cls=Calibrations, epilog=EXAMPLES)
def COMMAND() -> None:  # noqa: N802 - the seam
    """Make answers fit your own machine and your own runs, from a handful of measurements."""
