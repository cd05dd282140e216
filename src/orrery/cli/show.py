"""``orrery show``: what is known, and where it stands written."""

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
    "traces",
    "workloads",
    "terms",
)

EXAMPLES = """\b
Examples:
  orrery show devices              every device, a line each
  orrery show device h100-sxm      one device, every fact with its source
  orrery show formats --json"""


@click.command("show", epilog=EXAMPLES, short_help="What is known, with sources.")
@click.argument("kind")
@click.argument("name", required=False)
@as_json
def command(kind: str, name: str | None, is_json: bool) -> None:
    """Known devices, models, formats and more, with sources; NAME picks one.

    KIND is devices, models, formats, techniques, engines, frameworks, recipes, prices, api-prices, traces, workloads or
    terms (words of the field, defined).
    """
    kind = kind.casefold()
    plural = kind if kind.endswith("s") else f"{kind}s"
    if plural not in KINDS:
        near = nearest(plural, KINDS, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"write one of {', '.join(KINDS)}."
        raise ScenarioError(f"There is nothing called {kind!r} to show; {hint}")
    from orrery.scenario.show import show_all, show_one

    table = show_one(plural, name) if name else show_all(plural)
    if is_json:
        print_json(table.to_json())
        return
    from orrery.cli.tables import print_facts

    print_facts(table)
