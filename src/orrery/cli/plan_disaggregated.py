"""``orrery plan --disaggregate``: every design with the rate it carries, and whether pools of their own pay."""

from math import inf
from typing import TYPE_CHECKING

from orrery.base.units import figures, text
from orrery.cli.output import console, print_json, print_notes
from orrery.cli.progress import bar
from orrery.cli.sheet import Sheet
from orrery.reports.source import Source
from orrery.scenario.disaggregate import Design, Disaggregated, plan_disaggregated
from orrery.scenario.schema import read_scenario

if TYPE_CHECKING:
    from orrery.planner.goal import Goal
    from orrery.scenario.schema import Scenario

FIGURES = (
    ("devices", 0),
    ("requests/s", 0),
    ("per device", 0),
    ("analytical", 1),
    ("p99 TTFT", 0),
    ("p99 TPOT", 0),
    ("$/hour", 1),
    ("rated", 1),
)
"""Columns, and which of them give way first on a narrow screen."""


def run_disaggregated(scenario: "Scenario", is_json: bool) -> int:
    """Search, simulate, print; the exit code is 3 where no design holds the SLOs."""
    with bar("designs simulated") as tell:
        found = plan_disaggregated(scenario, on_design=tell)
    if is_json:
        print_json(found.to_json())
    else:
        print_designs(found)
    print_notes(found.notes)
    return 0 if any(design.holds for design in found.designs) else 3


def print_designs(found: Disaggregated) -> None:
    """A row for each design, the conclusion, and the command that runs the best one again."""
    out = console()
    table = Sheet(title=f"Joint, split or separate, {_limits(found.goal)}", left=3)
    for column in ("way", "prefill", "decode"):
        table.add_column(column, justify="left")
    for column, minor in FIGURES:
        table.add_column(column, justify="right", minor=minor)
    table.add_column("limited by", justify="left", wraps=True)
    shown = [d for d in found.designs if d.holds] or list(found.designs[:1])
    for design in shown:
        table.add_row(*_cells(design))
    out.print(table)
    if len(shown) < len(found.designs):
        out.print(f"{len(found.designs) - len(shown)} more were simulated and miss the SLOs; --json has them.")
    out.print(found.conclusion)
    if shown and shown[0].holds:
        best = Source(kind="simulate", scenario=read_scenario(shown[0].settings)).command
        out.print("The best design again:")
        out.print(f"  {best} --find-capacity", soft_wrap=True)


def _limits(goal: "Goal") -> str:
    """The limits of the designs as text."""
    if goal.budget.is_by_devices:
        return f"at no more than {goal.max_devices} devices"
    limits = [f"${goal.max_usd_per_hour:,.2f}/hour"] if goal.max_usd_per_hour < inf else []
    limits += [f"{text(goal.max_power_w, 'w')} of rated draw"] if goal.max_power_w < inf else []
    return f"at no more than {' and '.join(limits)}"


def _cells(design: Design) -> list[str]:
    summary = design.capacity.answer.summary if design.capacity else None
    price = "-" if design.weight.usd_per_hour is None else f"{design.weight.usd_per_hour:,.2f}"
    way = f"{design.way} ({design.link})" if design.link else design.way
    return [
        way,
        design.prefill or "-",
        design.decode,
        str(design.weight.num_devices),
        figures(design.requests_per_s),
        figures(design.requests_per_s_per_device),
        figures(design.analytical_requests_per_s),
        text(summary.ttft.percentile_s(99.0), "s") if summary else "-",
        text(summary.tpot.percentile_s(99.0), "s") if summary else "-",
        price,
        text(design.weight.power_w, "w"),
        design.limited_by,
    ]
