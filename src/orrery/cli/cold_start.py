"""``orrery cold-start``: how long until a new replica serves."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.units import percent
from orrery.cli.options import scenario_flags, scenario_from

if TYPE_CHECKING:
    from orrery.scenario.cold_start import ColdStart
    from orrery.scenario.cold_start_measured import Scored

EXAMPLES = """\b
Examples:
  orrery cold-start --model llama-3.1-70b --device h100-sxm --tp 4 --weights-from object-store
  orrery cold-start --model qwen3-32b --device h100-sxm --start new-node --load-format runai_streamer --compile-cache
  orrery cold-start --model llama-3.1-8b --device l40s --start sleep-1 --json
  orrery cold-start --measured"""


@click.command("cold-start", epilog=EXAMPLES)
@click.option("--measured", is_flag=True, help="Published times of starts beside what is predicted for them.")
@scenario_flags("cold-start")
def command(scenario_file: Path | None, save_scenario: Path | None, is_json: bool, measured: bool, **flags: Any) -> int:
    """How long until a new replica serves, stage by stage, and what of it takes longest."""
    from orrery.cli.output import print_infeasible, print_json, print_notes

    if measured:
        from orrery.scenario.cold_start_measured import scored_starts

        rows = scored_starts()
        if is_json:
            print_json({"rows": [row.to_json() for row in rows]})
        else:
            print_measured(rows)
        return 0
    scenario = scenario_from(flags, scenario_file, save_scenario)
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.cold_start import cold_start

    answer = cold_start(scenario)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_cold_start(answer)
    print_notes(answer.notes)
    return 0


def print_cold_start(answer: "ColdStart") -> None:
    """The stages, the sentence, and the other ways."""
    from orrery.base.units import text
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out, start, d = console(), answer.start, answer.deployment
    out.print(
        f"[bold]{d.model.name}[/] on {d.layout.num_devices} x {d.cluster.device.name} ({d.layout}), weights "
        f"{d.formats.weights}: {text(answer.held.device_bytes, 'bytes')} on each device"
    )
    table = Sheet("stage", "time", "bytes")
    table.add_column("", justify="left", wraps=True)
    for stage in start.stages:
        moved = text(stage.moved_bytes, "bytes") if stage.moved_bytes else ""
        table.add_row(stage.name, text(stage.seconds_s, "s"), moved, stage.because)
    out.print(table)
    share = start.longest.seconds_s / start.seconds_s
    out.print(
        f"It serves after [bold]{text(start.seconds_s, 's')}[/]; {start.longest.name} takes {percent(share)} of that."
    )
    others = Sheet("start", "weights from", "load format", "time", "longest", title="Other ways", left=3)
    for other in answer.others:
        others.add_row(other.start, other.path, other.loader, text(other.seconds_s, "s"), other.longest.name)
    out.print(others)


def print_measured(rows: "tuple[Scored, ...]") -> None:
    """Published times beside predictions."""
    from orrery.base.units import text
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    table = Sheet("what", "measured", "predicted", "ratio", title="Published times of starts")
    table.add_column("", justify="left")
    table.add_column("source", justify="left", wraps=True, minor=1)
    for row in rows:
        source = row.published.fact.source
        table.add_row(
            row.published.name,
            text(row.published.measured_s, "s"),
            text(row.predicted_s, "s"),
            f"{row.ratio:.2f}",
            "a constant was read off it" if row.published.is_fitted else "",
            source.title if source else "",
        )
    console().print(table)
