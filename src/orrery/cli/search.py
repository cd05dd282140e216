"""``orrery search``: networks out of a space, one for each device."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_search import SEARCH_SETTINGS

if TYPE_CHECKING:
    from orrery.cli.sheet import Sheet
    from orrery.scenario.search.answer import DeviceResult, SearchAnswer

EXAMPLES = """\b
Examples:
  orrery search --space mbconv --device v100-sxm-16gb,raspberry-pi-5-8gb --scores work --objective latency,score
  orrery search --space blocks --model llama-3.1-8b --device h100-sxm --latency-ratio 0.7 --json
  orrery search --space cells --device t4 --method evolution --first-parameters 5e5 --seeds 3
  orrery search --space my-space.toml --device l4,a10g --latency-ratio 0.5"""

MAX_POINTS = 20
FEW = 8
"""Choices that are listed one by one."""


@click.command("search", epilog=EXAMPLES)
@question_flags(SEARCH_SETTINGS)
def command(scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any) -> int:
    """Networks out of a space, one for each device: best in one metric within limits on others, with a front."""
    settings = settings_from(flags, scenario_file)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.fields_search import SEARCH_BY_NAME
    from orrery.scenario.inputs import read_asked
    from orrery.scenario.search.ask import search
    from orrery.scenario.search.question import SearchQuestion

    if save_scenario:
        read_asked(SearchQuestion, settings, SEARCH_BY_NAME).save(save_scenario)
    answer = search(**settings)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_search(answer)
    print_notes(answer.notes)
    return 0


def print_search(answer: "SearchAnswer") -> None:
    """The best network of every device beside its reference, how each does on the others, and the fronts."""
    from orrery.cli.output import console

    out = console()
    out.print(
        f"[bold]{answer.space}[/]: {answer.num_choices} choices, {answer.num_networks:.3g} networks, best "
        f"{answer.goal} by {answer.method}"
    )
    for found in answer.devices:
        out.print(_proof(answer, found))
        out.print(_metrics(answer, found))
        out.print(_alternatives(found))
        if len(found.front) > 1:
            out.print(_front(answer, found))
        if served := found.served:
            out.print(
                f"Served with all requests at hand: {served.child_tokens_per_s:,.0f} tokens/s a device, the parent "
                f"{served.parent_tokens_per_s:,.0f} on its best layout (tp {served.parent_tp}): "
                f"{served.gain_ratio:.2f} times."
            )
    if len(answer.devices) > 1:
        out.print(_crossed(answer))


def _proof(answer: "SearchAnswer", found: "DeviceResult") -> str:
    """The proof's gap to better networks, and the spread over other seeds."""
    if found.is_proven:
        says = "no better network exists" if found.best.metrics[answer.goal] == found.bound else "proven best by sums"
    else:
        says = f"the best of {found.num_evaluated:,} that were looked at"
    if len(found.goals) > 1:
        says += f"; over {len(found.goals)} seeds {min(found.goals):.4g} to {max(found.goals):.4g}"
    if found.num_failed:
        says += f"; {found.num_failed} seeds met no network within the limits"
    return f"[bold]{found.device}[/]: {says}"


def value(name: str, amount: float) -> str:
    """A metric with its unit."""
    from orrery.base.units import figures, text
    from orrery.scenario.search.costs import UNITS

    return text(amount, UNITS[name]) if UNITS[name] else figures(amount, 4)


def _metrics(answer: "SearchAnswer", found: "DeviceResult") -> "Sheet":
    from orrery.cli.sheet import Sheet

    names = tuple(found.best.metrics)
    table = Sheet("", *names)
    table.add_row("best", *(value(n, found.best.metrics[n]) for n in names), style="bold")
    reference = found.reference
    table.add_row(found.reference_name, *(value(n, reference[n]) if n in reference else "" for n in names))
    if found.limits:
        table.add_row("limit", *(value(n, found.limits[n]) if n in found.limits else "" for n in names), style="dim")
    return table


def _alternatives(found: "DeviceResult") -> str:
    """The cost of every choice; of many choices, a count by cost."""
    if len(found.best.alternatives) <= FEW:
        return ", ".join(f"{choice}: {name}" for choice, name in found.best.alternatives.items())
    counts = Counter(found.best.alternatives.values())
    return ", ".join(f"{name} ({n})" for name, n in counts.most_common())


def _front(answer: "SearchAnswer", found: "DeviceResult") -> "Sheet":
    from orrery.cli.sheet import Sheet

    heads = [answer.against, answer.goal, *(["over seeds"] if found.band else [])]
    table = Sheet(*heads, title=f"Pareto front on {found.device}", left=0)
    step = max(1, -(-len(found.front) // MAX_POINTS))
    for i in range(0, len(found.front), step):
        metrics = found.front[i].metrics
        cells = [value(answer.against, metrics[answer.against]), value(answer.goal, metrics[answer.goal])]
        if found.band:
            cells.append(f"{value(answer.goal, found.band[i].low)} to {value(answer.goal, found.band[i].high)}")
        table.add_row(*cells)
    return table


def _crossed(answer: "SearchAnswer") -> "Sheet":
    from orrery.base.units import text
    from orrery.cli.sheet import Sheet

    names = [found.device for found in answer.devices]
    table = Sheet("searched for", *names, title="Latency of each network on every device")
    for found in answer.devices:
        table.add_row(found.device, *(text(found.latency_s_on[name], "s") for name in names))
    return table
