"""``orrery split``: one network over a device, a link and a server."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.base.units import percent
from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_split import SPLIT_SETTINGS

if TYPE_CHECKING:
    from orrery.cli.sheet import Sheet
    from orrery.scenario.split import SplitAnswer
    from orrery.scenario.split_session import Session

EPILOG = """\b
Examples:
  orrery split --model vgg-16 --device raspberry-pi-4-8gb --server rtx-4090 --link-rates 0.5,5,50
  orrery split --model resnet-50 --device jetson-orin-nano-8gb --server l40s --link-rates 10 --json
  orrery split --model resnet-50 --device raspberry-pi-4-8gb --server rtx-4090 --link-rates 1,10 --bottleneck conv2_3:12
  orrery split --model mobilenet-v2 --device raspberry-pi-4-8gb --server l4 --link-trace 4g --limit-s 0.1
"""


@click.command("split", epilog=EPILOG)
@question_flags(SPLIT_SETTINGS)
def command(scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any) -> None:
    """One network over a device, a link and a server: the best cut at each link rate."""
    settings = settings_from(flags, scenario_file)
    from orrery.cli.output import print_json, print_notes
    from orrery.scenario.split import SplitQuestion, split

    answer = split(**settings)
    if save_scenario:
        SplitQuestion.model_validate(settings).save(save_scenario)
    if is_json:
        print_json(answer.to_json())
    else:
        print_split(answer)
    print_notes(answer.notes)


def print_split(answer: "SplitAnswer") -> None:
    """Where splitting is best, the best cut of every range of rates, and the rates that were asked for."""
    from orrery.base.units import text
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out = console()
    inside = " and ".join(f"from {_mbit(a)} to {_mbit(b)}" for a, b in answer.split_ranges)
    out.print(f"Splitting is best {inside or 'at no link rate'}.")
    ranges = Sheet("cut after", "from", "to", "sent", "device", "server", title="Best cut by link rate")
    for each in answer.ranges:
        cut, ends = answer.cuts[each.index], (each.from_bytes_per_s, each.to_bytes_per_s)
        times = text(cut.sent_bytes, "bytes"), text(cut.head_s, "s"), text(cut.tail_s, "s")
        ranges.add_row(cut.name, *map(_mbit, ends), *times)
    out.print(ranges)
    if answer.converter_pays_below_frac is not None:
        out.print(
            f"Converting every input pays below a share of {percent(answer.converter_pays_below_frac)} easy inputs."
        )
    if answer.rates:
        out.print(_rates(answer))
    if answer.session:
        out.print(_session(answer.session))


def _rates(answer: "SplitAnswer") -> "Sheet":
    from orrery.base.units import text
    from orrery.cli.sheet import Sheet

    rates = Sheet("link", "best", "delay", "energy", "all on device", "all on server", left=2)
    for row in answer.rates:
        values = text(row.delay_s, "s"), text(row.energy_j, "j"), text(row.device_s, "s"), text(row.server_s, "s")
        rates.add_row(_mbit(row.link_bytes_per_s), row.best, *values)
    return rates


def _session(found: "Session") -> "Sheet":
    from orrery.base.units import text
    from orrery.cli.sheet import Sheet

    names = ("cut", "mean delay", "p95", "in time", "energy per input", "switches", "battery")
    sheet = Sheet(*names, title=f"{found.num_frames:,} inputs over {text(found.duration_s, 's')} of the link's trace")
    for one, lasts_s in zip(found.policies, found.battery_s, strict=True):
        battery = "" if lasts_s is None else text(lasts_s, "s")
        times = text(one.mean_s, "s"), text(one.p95_s, "s"), percent(one.in_time_frac)
        sheet.add_row(one.name, *times, text(one.mean_energy_j, "j"), f"{one.num_switches:,}", battery)
    return sheet


def _mbit(rate_bytes_per_s: float) -> str:
    from orrery.base.units import figures

    return "any" if rate_bytes_per_s == float("inf") else f"{figures(8e-6 * rate_bytes_per_s)} Mbit/s"
