"""``orrery show``: what is known, and where it stands written."""

from pathlib import Path

import click

from orrery.base.errors import ScenarioError, nearest
from orrery.cli.options import as_json
from orrery.cli.output import print_json

KINDS = (
    "devices",
    "models",
    "formats",
    "techniques",
    "engines",
    "frameworks",
    "recipes",
    "prices",
    "api-prices",
    "places",
    "traces",
    "workloads",
    "terms",
)

EXAMPLES = """\b
Examples:
  orrery show devices              every device, a line each
  orrery show device h100-sxm      one device, every fact with its source
  orrery show formats --json
  orrery show device rtx-4090 --as-file my-gpu.toml --fact memory_capacity_bytes="32 GB" --title "My GPU"
The last writes a device file of your own; what no --fact states is assumed to be as on that device."""


@click.command("show", epilog=EXAMPLES, short_help="What is known, with sources.")
@click.argument("kind")
@click.argument("name", required=False)
@click.option("--as-file", type=click.Path(path_type=Path), metavar="FILE.toml", help="Write a device file like it.")
@click.option("--fact", "facts", multiple=True, metavar="NAME=VALUE", help="A fact of that file; repeat for more.")
@click.option("--title", default="My accelerator", show_default=True, help="The title of that file.")
@as_json
def command(
    kind: str, name: str | None, as_file: Path | None, facts: tuple[str, ...], title: str, is_json: bool
) -> None:
    """Known devices, models, formats and more, with sources; NAME picks one.

    KIND is devices, models, formats, techniques, engines, frameworks, recipes, prices, api-prices, places, traces,
    workloads or terms (words of the field, defined).
    """
    kind = kind.casefold()
    plural = kind if kind.endswith("s") else f"{kind}s"
    if plural not in KINDS:
        near = nearest(plural, KINDS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"write one of {', '.join(KINDS)}."
        raise ScenarioError(f"There is nothing called {kind!r} to show; {hint}")
    if as_file or facts:
        _write(plural, name, as_file, facts, title)
        return
    from orrery.scenario.show import show_all, show_one

    table = show_one(plural, name) if name else show_all(plural)
    if is_json:
        print_json(table.to_json())
        return
    from orrery.cli.tables import print_facts

    print_facts(table)


def _write(kind: str, name: str | None, path: Path | None, facts: tuple[str, ...], title: str) -> None:
    """Write a device file; ScenarioError where none is asked for in full."""
    from orrery.base.files import write_atomically
    from orrery.catalog.own_device import own_device

    if kind != "devices" or not name or path is None:
        raise ScenarioError("--as-file: write orrery show device NAME --as-file FILE.toml --fact NAME=VALUE.")
    if path.suffix != ".toml" or path.exists():
        why = "there is such a file already" if path.exists() else "a device file ends in .toml"
        raise ScenarioError(f"--as-file: {path}: {why}; write another name.")
    if wrong := [fact for fact in facts if "=" not in fact]:
        raise ScenarioError(f'--fact: got {wrong[0][:40]!r}; write NAME=VALUE, such as memory_capacity_bytes="32 GB".')
    pairs = (fact.partition("=") for fact in facts)
    write_atomically(path, own_device(name, {key.strip(): value for key, _, value in pairs}, title))
    click.echo(f"{path}: a device like {name}; every command takes --device {path}.")
