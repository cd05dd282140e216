"""``orrery plan --simulate``: what the simulation says of each plan, beside what the closed form said."""

from pathlib import Path
from typing import TYPE_CHECKING

from orrery.base.units import figures, percent, text
from orrery.cli.output import console, print_json, print_notes
from orrery.cli.progress import bar, patience
from orrery.cli.report_file import write_report
from orrery.cli.sheet import Sheet
from orrery.cli.views import print_plans
from orrery.scenario.plan_simulated import SimulatedPlan, plan_simulated

if TYPE_CHECKING:
    from orrery.scenario.schema import Scenario


def run_plan_simulated(scenario: "Scenario", is_json: bool, report: Path | None) -> int:
    """Search, simulate, print; the exit code."""
    with bar("plans simulated") as tell:
        found = plan_simulated(scenario, patience=patience(), on_plan=tell)
    plain = found.to_json()
    write_report(report, "plan", scenario, plain, answer=found)
    if is_json:
        print_json(plain)
    else:
        print_plans(found.answer, is_every=True)
        if found.simulated:
            print_simulated(found.simulated)
    print_notes(n for n in found.answer.notes if is_json or not n.startswith("price:"))
    return 3 if found.answer.infeasible else 0


def print_simulated(simulated: tuple[SimulatedPlan, ...]) -> None:
    """A row for each plan; the closed form's means stand in brackets."""
    table = Sheet(title="Simulated (in brackets the closed form)")
    for column, minor in (
        ("", 0),
        ("devices", 0),
        ("TTFT", 0),
        ("p99 TTFT", 0),
        ("TPOT", 0),
        ("p99 TPOT", 0),
        ("tok/s", 1),
        ("in time", 0),
        ("goodput", 1),
    ):
        table.add_column(column, justify="right" if column else "left", minor=minor)
    table.add_column("", justify="left")
    for number, one in enumerate(simulated, 1):
        s, o = one.answer.summary, one.operation
        table.add_row(
            str(number),
            str(o.num_devices),
            f"{text(s.ttft.mean_s, 's')} ({text(o.ttft_s, 's')})",
            text(s.ttft.percentile_s(99.0), "s"),
            f"{text(s.tpot.mean_s, 's')} ({text(o.tpot_s, 's')})",
            text(s.tpot.percentile_s(99.0), "s"),
            f"{s.output_tokens_per_s:,.0f} ({one.plan.output_tokens_per_s:,.0f})",
            _in_time(one),
            f"{figures(s.goodput.requests_per_s)}/s" if s.goodput else "-",
            _verdict(one),
        )
    console().print(table)


def _in_time(one: SimulatedPlan) -> str:
    """The share of the requests within all limits; with percentiles alone, the least of their shares."""
    found = one.answer.attained
    shares = [p.attained_frac for p in found.percentiles] if found.attained_frac is None else [found.attained_frac]
    return percent(min(shares), 1) if shares else "-"


def _verdict(one: SimulatedPlan) -> str:
    """Verdict of a simulated plan, and its cost."""
    found = one.answer.attained
    if not one.is_met:
        return "the queue grows" if found.is_met else f"misses {found.worst}"
    added = f" with {one.num_added} more replica{'s' if one.num_added > 1 else ''}" if one.num_added else ""
    return f"holds{added}" if found.has_objectives or added else "keeps up"
