"""``orrery scaling``: what training in few bits costs in loss, and when it pays."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_scaling import SCALING_SETTINGS

if TYPE_CHECKING:
    from orrery.scenario.scaling import FormatAnswer, WidthAnswer

EXAMPLES = """\b
Examples:
  orrery scaling --law fp-quantisation --parameters 1e9 --tokens 100e9 --exponent-bits 4 --mantissa-bits 3 --block 32
  orrery scaling --parameters 7e9 --tokens 2e12 --exponent-bits 2 --mantissa-bits 1 --compute-flops 1e24
  orrery scaling --law quartet --parameters 8e9 --tokens 2e12 --device b200
  orrery scaling --law quartet --parameters 8e9 --tokens 2e12 --fp4-ratio 1.6 --same-size --json
  orrery scaling --law quartet --parameters 8e9 --tokens 2e12 --runs fp4-runs.csv"""


@click.command("scaling", epilog=EXAMPLES)
@question_flags(SCALING_SETTINGS)
def command(scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any) -> None:
    """Scaling laws of low-precision training: loss, best split of a width, critical data, best width for a budget."""
    settings = settings_from(flags, scenario_file)
    from orrery.cli.output import print_json, print_notes
    from orrery.scenario.fields_scaling import SCALING_BY_NAME
    from orrery.scenario.inputs import read_asked
    from orrery.scenario.scaling import FormatAnswer, ScalingQuestion, scaling

    if save_scenario:
        read_asked(ScalingQuestion, settings, SCALING_BY_NAME).save(save_scenario)
    answer = scaling(**settings)
    if is_json:
        print_json(answer.to_json())
    elif isinstance(answer, FormatAnswer):
        print_formats(answer)
    else:
        print_widths(answer)
    print_notes(answer.notes)


def print_formats(answer: "FormatAnswer") -> None:
    """The loss of the run, every width's best split, and the best width as the budget grows."""
    from orrery.base.units import figures
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out, run, spent = console(), answer.run, answer.budget
    out.print(
        f"[bold]{figures(run.num_parameters)} parameters, {figures(run.num_tokens)} tokens[/] in E{run.exponent_bits}"
        f"M{run.mantissa_bits}, blocks of {run.block_elements}: loss [bold]{run.loss:.4f}[/] "
        f"({run.loss - run.lossless:+.4f} against exact arithmetic)"
    )
    out.print(f"More than {figures(run.critical_tokens)} tokens make this model worse in this format.")
    table = Sheet("bits", "split", "loss", "added", "critical tokens", title="Every width, best split", left=0)
    for s in answer.splits:
        table.add_row(
            f"{s.bits}",
            f"E{s.exponent_bits}M{s.mantissa_bits}",
            f"{s.loss:.4f}",
            f"{s.loss - s.lossless:.4f}",
            figures(s.critical_tokens),
        )
    out.print(table)
    size, tokens = figures(spent.num_parameters), figures(spent.num_tokens)
    out.print(
        f"A budget of {figures(spent.compute_flops)} FLOP (16-bit operations; cost in proportion to bits) is best "
        f"spent in [bold]{spent.bits} bits[/] (E{spent.exponent_bits}M{spent.mantissa_bits}): {size} parameters, "
        f"{tokens} tokens, loss {spent.loss:.4f}."
    )
    out.print("\nBest width by budget")
    for b in answer.budgets:
        out.print(
            f"  {figures(b.compute_flops, 1):>6} FLOP  {'#' * b.bits:<16} {b.bits} bits, loss {b.loss:.4f}",
            markup=False,
        )


LETTERS = ("8", "f", "b", "4")
"""In the order of the law's choices: all FP8, FP4 forward, FP4 backward, all FP4."""


def print_widths(answer: "WidthAnswer") -> None:
    """The four choices at the asked point, from where FP4 wins, and the map around it."""
    from orrery.base.units import figures
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out, best, size = console(), answer.best, answer.best.num_parameters
    grows = "grows until its forward pass costs as much" if best.is_resized else "keeps its size and sees more tokens"
    out.print(
        f"[bold]In the time that FP8 takes for {figures(size)} parameters and {figures(best.num_tokens)} tokens[/], "
        f"FP4 products {best.fp4_ratio:.3g} x as fast; the model {grows}"
    )
    table = Sheet("forward", "backward", "forward speed", "step speed", "loss", left=2)
    table.add_column("", justify="left")
    for t in answer.trials:
        forward, step = t.speedups
        row = (t.choice.forward, t.choice.backward, f"{forward:.3g} x", f"{step:.3g} x", f"{t.loss:.4f}")
        table.add_row(*row, "best" if t is best else "", style="bold" if t is best else None)
    out.print(table)
    low, high = answer.fp4_wins_tokens
    if low == low:
        out.print(
            f"FP4 both ways beats FP8 both ways from {figures(low)} to {figures(high)} tokens ({figures(low / size)} "
            f"to {figures(high / size)} a parameter; looked for between 1 and a million)."
        )
    else:
        out.print("FP4 both ways beats FP8 both ways at no amount of data.")
    out.print(_map(answer), markup=False)


def _map(answer: "WidthAnswer") -> str:
    """A letter for the best choice at every model size (up) and number of tokens a parameter (to the right)."""
    from orrery.base.units import figures
    from orrery.scenario.scaling import MAP_PARAMETERS, MAP_TOKENS_PER_PARAMETER

    sizes = list(zip(MAP_PARAMETERS, answer.choices, strict=True))[::-1]
    lines = ["Best choice: 8 all FP8, f FP4 forward, b FP4 backward, 4 all FP4", "parameters"]
    lines += [f"{figures(size, 2):>10} |" + "".join(f" {LETTERS[i]}" for i in row) for size, row in sizes]
    ticks = [f"{figures(x, 2):<16}" for x in MAP_TOKENS_PER_PARAMETER[::8]]
    lines.append(" " * 11 + "+" + "-" * (2 * len(MAP_TOKENS_PER_PARAMETER)))
    lines += [" " * 13 + "".join(ticks).rstrip(), " " * 13 + "tokens a parameter"]
    return "\n".join(lines)
