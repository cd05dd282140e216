"""``orrery papers trending``: what is new that matters to you."""

from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.units import percent
from orrery.cli.options import as_json
from orrery.cli.own_library import day, with_library

if TYPE_CHECKING:
    from orrery.evidence.understanding.meaning import DeploymentEffect
    from orrery.evidence.understanding.trending import Trend

MAX_CLAIMS = 2
"""Shown of one paper; --json lists every one."""

EXAMPLES = """\b
Examples:
  orrery papers trending
  orrery papers trending --by month --layer serving --layer moe --limit 5
  orrery papers trending --scenario mine.toml    and what each could mean for your own deployment"""


@click.command("trending", epilog=EXAMPLES)
@click.option(
    "--by", type=click.Choice(["day", "week", "month"]), default="week", show_default=True, help="How far back."
)
@click.option("--date", "until", type=day, metavar="DATE", help="The last day; default: today.")
@click.option("--layer", "layers", multiple=True, metavar="NAME", help="Only papers of this layer; repeat for more.")
@click.option("--limit", type=click.IntRange(1, 1000), default=10, metavar="N", show_default=True, help="How many.")
@click.option(
    "--scenario",
    "scenario_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Your deployment: what a paper's technique would change in it.",
)
@with_library
@as_json
def command(
    by: str,
    until: date | None,
    layers: tuple[str, ...],
    limit: int,
    scenario_file: Path | None,
    library: Path | None,
    is_json: bool,
) -> None:
    """New papers, best first: how recent, how fast votes come in, how much like what you follow, and why."""
    from orrery.cli.own_library import open_library
    from orrery.cli.progress import bar
    from orrery.evidence.understanding.names import check_layers
    from orrery.evidence.understanding.trending import trending

    check_layers(layers)
    with open_library(library) as store, bar("papers understood") as report:
        found = trending(store, until or date.today(), by, layers, report)
    shown = found[:limit]
    meanings = _meanings(shown, scenario_file)
    if is_json:
        from orrery.cli.output import print_json

        papers = [_json(trend, meanings.get(trend.entry.id)) for trend in shown]
        print_json({"by": by, "date": (until or date.today()).isoformat(), "num_all": len(found), "papers": papers})
        return
    for trend in shown:
        _print(trend, meanings.get(trend.entry.id, ()))
    from orrery.cli.output import console

    empty = "Nothing new in these days: orrery papers fetch gets more."
    console().print(f"{len(shown)} of {len(found)} papers of the {by}." if found else empty, markup=False)


def _meanings(shown: "Sequence[Trend]", file: Path | None) -> "dict[str, tuple[DeploymentEffect, ...]]":
    """Effect of each paper on a deployment; empty without one."""
    if file is None:
        return {}
    from orrery.cli.progress import bar, patience
    from orrery.evidence.understanding.meaning import Deployment
    from orrery.scenario.file import load_scenario

    deployment = Deployment(load_scenario(file))
    found: dict[str, tuple[DeploymentEffect, ...]] = {}
    with patience(), bar("papers tried in your deployment") as report:
        for i, trend in enumerate(shown, start=1):
            found[trend.entry.id] = deployment.meanings(trend.understood)
            report(i, len(shown))
    return found


def _json(trend: "Trend", meanings: "Sequence[DeploymentEffect] | None") -> dict[str, Any]:
    from dataclasses import asdict

    from orrery.evidence.feed.entry import entry_json

    found = {
        "score": trend.score,
        "parts": [asdict(part) for part in trend.parts],
        "is_read": trend.is_read,
        "is_upvoted": trend.is_upvoted,
        **entry_json(trend.entry, trend.understood, trend.library_key),
    }
    return found if meanings is None else {**found, "meaning": [asdict(m) for m in meanings]}


def _print(trend: "Trend", meanings: "Sequence[DeploymentEffect]") -> None:
    """A paper in a few lines; what others wrote is shown as it is, not as markup."""
    from orrery.cli.output import console

    out, entry, classification = console(), trend.entry, trend.understood
    out.print(f"{trend.score:5.2f}  {entry.title}", markup=False, style="bold")
    about = [
        entry.id,
        classification.layer and f"{classification.layer} ({percent(classification.layer_confidence_frac)})",
        entry.organisation,
        _known(trend),
    ]
    out.print("       " + ", ".join(word for word in about if word), markup=False, style="dim")
    for part in trend.parts:
        out.print(f"       {part.value:+.2f} {part.name}: {part.because}", markup=False)
    for text in list(dict.fromkeys(claim.text for claim in classification.claims))[:MAX_CLAIMS]:
        out.print(f"       claims: {text}", markup=False)
    for meaning in meanings:
        out.print(f"       in your deployment: {meaning}", markup=False)


def _known(trend: "Trend") -> str:
    words = [f"orrery papers show {trend.library_key}"] if trend.library_key else []
    return ", ".join(words + (["upvoted"] if trend.is_upvoted else []))
