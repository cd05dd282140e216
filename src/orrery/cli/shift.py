"""``orrery shift``: work that may wait, in cheap or clean hours."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orrery.cli.question import question_flags, settings_from
from orrery.scenario.fields_shift import JOB, SHIFT_SETTINGS

if TYPE_CHECKING:
    from orrery.scenario.shift import ShiftAnswer

EPILOG = """\b
Examples:
  orrery shift --hours day.csv --job train=400,until=24,most=50 --row-limit-w 80000
  orrery shift --hours week.csv --fleet fleet.json --job eval=60,from=20,until=32 --usd-per-tonne 100 --json"""


@click.command("shift", epilog=EPILOG)
@click.option(JOB.flag, JOB.name, multiple=True, metavar=JOB.metavar, help=JOB.help)
@question_flags(SHIFT_SETTINGS)
def command(
    job: tuple[str, ...], scenario_file: Path | None, save_scenario: Path | None, is_json: bool, **flags: Any
) -> int:
    """Batch work moved to cheap or clean hours, beside a service, within the limit of its row."""
    settings = settings_from({**flags, "job": list(job) or None}, scenario_file)
    from orrery.cli.output import print_infeasible, print_json, print_notes
    from orrery.scenario.ask import InfeasibleAnswer
    from orrery.scenario.shift import ShiftQuestion, shift

    if save_scenario:
        ShiftQuestion.model_validate(settings).save(save_scenario)
    answer = shift(**settings)
    if isinstance(answer, InfeasibleAnswer):
        return print_infeasible(answer, is_json)
    if is_json:
        print_json(answer.to_json())
    else:
        print_shift(answer)
    print_notes(answer.notes)
    return 0


def print_shift(answer: "ShiftAnswer") -> None:
    """Cost and carbon of both schedules, and the hours."""
    from orrery.base.units import figures, text
    from orrery.cli.output import console
    from orrery.cli.sheet import Sheet

    out, early, best = console(), answer.early, answer.best
    table = Sheet("", "money", "CO2")
    for name, usd, grams in (
        ("the service", answer.service_usd, answer.service_carbon_g),
        ("jobs at once", early.usd, early.carbon_g),
        ("jobs shifted", best.usd, best.carbon_g),
    ):
        table.add_row(name, f"${figures(usd, 4)}", f"{figures(grams / 1e3, 4)} kg")
    out.print(table)
    hourly = Sheet("hour", "service", *(job.name for job in answer.jobs), title="Power by hour", left=0)
    for hour, base in enumerate(answer.hours.base_w):
        watts = [text(float(w), "w") if w > 1e-6 else "" for w in best.job_w[:, hour]]
        hourly.add_row(str(hour), text(float(base), "w") if base else "", *watts)
    out.print(hourly)
    out.print(f"The row draws {text(answer.peak_w, 'w')} at most.")
