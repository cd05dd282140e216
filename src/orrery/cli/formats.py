"""``orrery formats``: number formats listed, shown, and compared."""

from pathlib import Path
from typing import Any

import click

from orrery.cli.options import as_json
from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_quantize import COMPARE_SETTINGS

EXAMPLES = """\b
Examples:
  orrery formats list --json
  orrery formats show nvfp4
  orrery formats compare nvfp4 mxfp4 fp8 --device b200 --on normal,outliers"""

SHOW_EXAMPLES = """\b
Examples:
  orrery formats show nvfp4
  orrery formats show e4m3fn/none               the element alone, every value
  orrery formats show uint4/128:fp16:zero       a spelling: groups of 128 with a zero point
  orrery formats show mxfp8 --json"""

COMPARE_EXAMPLES = """\b
Examples:
  orrery formats compare nvfp4 mxfp4 fp8 --device b200
  orrery formats compare nvfp4 nvint4 --on normal,outliers --rotate
  orrery formats compare fp8 int4_weight_only --device h100-sxm --model llama-3.1-8b
  orrery formats compare nvfp4 int4/128:fp16 e3m2/32:ue8m0 --json"""


@click.group("formats", epilog=EXAMPLES, invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> None:
    """Number formats: what they hold, what they keep of a signal, how fast they run on a device.

    Without a command, all of them.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_command, is_json=False)


@command.command("list", short_help="Every format, element and family.")
@as_json
def list_command(is_json: bool) -> None:
    """Every format that has a name, every element, and how the families are spelled."""
    from orrery.cli.format_views import print_list
    from orrery.cli.output import print_json
    from orrery.scenario.formats import list_formats

    found = list_formats()
    if is_json:
        print_json(found.to_json())
    else:
        print_list(found)


@command.command("show", epilog=SHOW_EXAMPLES, short_help="One format, all of it.")
@click.argument("name")
@as_json
def show_command(name: str, is_json: bool) -> None:
    """One format or element: values, scales, what it does at its edges, who multiplies it, and its relative error."""
    from orrery.cli.format_views import print_shown
    from orrery.cli.output import print_json, print_notes
    from orrery.scenario.formats import show_format

    found = show_format(name)
    if is_json:
        print_json(found.to_json())
    else:
        print_shown(found)
    print_notes(found.notes)


@command.command("compare", epilog=COMPARE_EXAMPLES, short_help="Formats side by side.")
@click.argument("formats", metavar="FORMAT…", nargs=-1)
@question_flags(COMPARE_SETTINGS)
def compare_command(
    formats: tuple[str, ...], scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any
) -> None:
    """Formats side by side: bits, signal kept, and on a device speed, memory, and the work of casting."""
    settings = settings_from(flags, scenario_file) | ({"formats": formats} if formats else {})
    from orrery.cli.comparison import print_comparison
    from orrery.cli.output import print_json, print_notes
    from orrery.scenario.compare_formats import CompareQuestion, compare_formats
    from orrery.scenario.fields_quantize import COMPARE_BY_NAME
    from orrery.scenario.inputs import read_asked

    if save_scenario:
        read_asked(CompareQuestion, settings, COMPARE_BY_NAME).save(save_scenario)
    found = compare_formats(**settings)
    if is_json:
        print_json(found.to_json())
    else:
        print_comparison(found)
    print_notes(found.notes)
