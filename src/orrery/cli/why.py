"""``orrery why``: one number, unfolded down to facts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.options import scenario_flags, scenario_from

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from orrery.scenario.reason import Reason

EXAMPLES = """\b
Examples:
  orrery why tpot_s --model llama-3.1-8b --device h100-sxm --input-tokens 1024 --output-tokens 256 --concurrency 32
  orrery why memory.kv --scenario mine.toml
  orrery why usd_per_million_tokens --scenario mine.toml --depth 2"""


@click.command("why", epilog=EXAMPLES)
@click.argument("metric")
@click.option("--depth", type=click.IntRange(0, 50), default=3, show_default=True, metavar="N", help="Levels to show.")
@scenario_flags("why")
def command(
    metric: str, depth: int, scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any
) -> int:
    """Explain METRIC of an estimate (tpot_s, memory.kv, usd_per_million_tokens, …) by its rules, parts and sources."""
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.cli.output import console, print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer, estimate
    from orrery.scenario.why import why

    answer = estimate(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    reason = why(answer, metric)
    if is_json:
        print_json({"why": reason.to_json()})
    else:
        console().print(tree(reason, depth))
    print_notes(answer.notes)
    return 0


def tree(reason: "Reason", depth: int) -> "Tree":
    """The reason as a tree of at most ``depth`` levels; a fact is cited in full where it first stands."""
    from rich.tree import Tree

    root = Tree(_line(reason))
    _grow(root, reason, depth, set())
    return root


def _folded(reason: "Reason") -> str:
    """The count of parts and facts that a deeper tree would show."""
    counts = ((len(reason.parts), "part"), (len(reason.facts), "fact"))
    return "… " + ", ".join(f"{n} {noun}{'s' * (n != 1)}" for n, noun in counts if n) + " (--depth)"


def _grow(node: "Tree", reason: "Reason", depth: int, cited: set[str]) -> None:
    from rich.text import Text

    if depth <= 0:
        if reason.parts or reason.facts:
            node.add(Text(_folded(reason), style="dim"))
        return
    for fact in reason.facts:
        text = fact.cite()
        node.add(Text(f"{fact.name} (as above)" if text in cited else text, style="green"))
        cited.add(text)
    for part in reason.parts:
        _grow(node.add(_line(part)), part, depth - 1, cited)


def _line(reason: "Reason") -> "Text":
    from rich.text import Text

    from orrery.scenario.show import readable

    name, _, unit = reason.name.partition(": ")
    text = readable(unit or name.rsplit(".", 1)[-1], reason.value) if reason.value is not None else "unknown"
    line = Text(f"{name} = ", style="bold")
    line.append(text)
    if reason.rule:
        line.append(f"   {reason.rule}", style="dim")
    return line
