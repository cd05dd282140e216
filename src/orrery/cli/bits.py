"""``orrery bits``: a number format for each layer, chosen by an integer program."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_bits import BITS_SETTINGS

if TYPE_CHECKING:
    from orrery.cli.sheet import Sheet
    from orrery.scenario.bits import BitsAnswer

EXAMPLES = """\b
Examples:
  orrery bits --model llama-3.1-8b --device b200 --formats bf16,fp8,nvfp4 --latency-ratio 0.7
  orrery bits --model llama-3.1-8b --device b200 --formats bf16,fp8,nvfp4 --size-bytes 6e9 --tokens 4096 --json
  orrery bits --checkpoint model.safetensors --device h100-sxm --formats bf16,fp8,int4_weight_only --size-ratio 0.4
  orrery bits --layers resnet50.csv --device t4 --formats int8,int4_int4 --latency-ratio 0.8"""


@click.command("bits", epilog=EXAMPLES)
@question_flags(BITS_SETTINGS)
def command(scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any) -> int:
    """A number format for each layer: least perturbation under limits on latency, size and energy, solved exactly."""
    settings = settings_from(flags, scenario_file)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.bits import BitsQuestion, bits
    from orrery.scenario.fields_bits import BITS_BY_NAME
    from orrery.scenario.inputs import read_asked

    if save_scenario:
        read_asked(BitsQuestion, settings, BITS_BY_NAME).save(save_scenario)
    answer = bits(**settings)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_bits(answer)
    print_notes(answer.notes)
    return 0


def print_bits(answer: "BitsAnswer") -> None:
    """The mixture beside every uniform assignment, formats by group of layers, and the front."""
    from orrery.cli.output import console

    out = console()
    proven = "no better assignment exists" if answer.best.is_proven else "the best that was found in time"
    out.print(f"[bold]{len(answer.best.options.layers)} layers of {answer.what}[/] on {answer.device}: {proven}")
    out.print(_wholes(answer))
    out.print(_groups(answer))
    if len(answer.front) > 1:
        out.print("Pareto front: perturbation (log) against latency; * the answer, o the front", markup=False)
        out.print(front_plot(answer, min(out.width, 90)), markup=False, highlight=False)


def _wholes(answer: "BitsAnswer") -> "Sheet":
    from orrery.base.units import figures, text
    from orrery.cli.sheet import Sheet
    from orrery.planner.bits.options import UNITS
    from orrery.scenario.bits import whole

    table = Sheet("", "perturbation", "latency", "size", "energy")
    for w in (whole("mixed", answer.best), *answer.uniform):
        is_mixed = w.name == "mixed"
        table.add_row(
            w.name if is_mixed else f"all {w.name}",
            figures(w.perturbation_ratio, 4),
            text(w.latency_s, "s"),
            text(w.size_bytes, "bytes"),
            text(w.energy_j, "j"),
            style="bold" if is_mixed else None,
        )
    limits = {metric: text(limit, UNITS[metric]) for metric, limit in answer.limits.items()}
    if limits:
        table.add_row("at most", "", *(limits.get(metric, "") for metric in UNITS), style="dim")
    return table


MAX_GROUPS = 40


def _groups(answer: "BitsAnswer") -> "Sheet":
    from orrery.cli.sheet import Sheet

    formats = answer.best.options.formats
    table = Sheet("group", *formats, title="Layers by group and format")
    for name, counts in list(answer.groups.items())[:MAX_GROUPS]:
        table.add_row(name, *(f"{counts[f]}" if counts[f] else "" for f in formats))
    if (more := len(answer.groups) - MAX_GROUPS) > 0:
        table.add_row(f"… {more} more groups; --json lists every layer")
    return table


HEIGHT = 12


def front_plot(answer: "BitsAnswer", columns: int) -> str:
    """Latency to the right, the logarithm of the perturbation upwards."""
    from math import log10

    from orrery.base.units import text
    from orrery.cli.scatter import raster

    shown = (*answer.front, answer.best)
    xs, marks = [a.total("latency") for a in shown], [*("o" for _ in answer.front), "*"]
    least = min((a.perturbation_ratio for a in shown if a.perturbation_ratio > 0.0), default=1.0)
    ys = [log10(max(a.perturbation_ratio, least)) for a in shown]
    left, right, wide, low, high = min(xs), max(xs), columns - 14, min(ys), max(ys)
    lines: list[str] = []
    for row, cells in enumerate(raster(xs, ys, marks, (wide, HEIGHT), (left, right), (low, high))):
        label = f"{10 ** (high - (high - low) * row / HEIGHT):.2g}" if row % 4 == 0 else ""
        lines.append(f"{label:>9} |{cells}")
    lines.append(" " * 10 + "+" + "-" * wide)
    return "\n".join([*lines, " " * 11 + text(left, "s") + text(right, "s").rjust(wide - len(text(left, "s")))])
