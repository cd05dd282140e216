"""``orrery simulate --find-capacity``: the highest rate, what limits it, and the rates that were tried."""

from pathlib import Path
from typing import TYPE_CHECKING

from orrery.base.units import figures, percent, text
from orrery.cli.output import console, print_infeasible, print_json, print_notes
from orrery.cli.progress import bar, patience
from orrery.cli.report_file import write_report
from orrery.cli.serving_result import print_serving_result
from orrery.cli.sheet import Sheet
from orrery.cli.simulate_report import write_result
from orrery.scenario.ask import InfeasibleAnswer
from orrery.scenario.capacity import Capacity, find_capacity

if TYPE_CHECKING:
    from orrery.scenario.schema import Scenario

LIKELY_PROBES = 9
"""Expected number of probes of a search, for the progress bar; it may take more."""


def run_capacity(scenario: "Scenario", is_json: bool, out: tuple[Path, ...], report: Path | None) -> int:
    """Search, write, print; the exit code."""
    with bar("rates tried") as tell:
        tried: list[object] = []

        def on_probe(probe: object) -> None:
            tried.append(probe)
            tell(len(tried), max(LIKELY_PROBES, len(tried)))

        found = find_capacity(scenario, patience=patience(), on_probe=on_probe)
    plain = found.to_json()
    write_report(report, "capacity", scenario, plain)
    if isinstance(found, InfeasibleAnswer):
        return print_infeasible(found, is_json)
    for path in out:
        write_result(found.answer.simulated, plain, path)
    if is_json:
        print_json(plain)
    else:
        print_serving_result(plain)
        print_capacity(found)
    print_notes(found.answer.notes)
    return 0


def print_capacity(found: Capacity) -> None:
    """The answer in a sentence, and every rate that was tried."""
    out = console()
    table = Sheet("requests/s", "within the objectives", "goodput", "p99 TTFT", "p99 TPOT", title="Rates tried", left=0)
    table.add_column("", justify="left", wraps=True)
    for p in found.probes:
        is_best = p.requests_per_s == found.requests_per_s
        message = "holds" if p.is_met else f"{p.limited_by}" + ("" if p.is_sustained else ", the queue grows")
        table.add_row(
            figures(p.requests_per_s, 4),
            "-" if p.attained_frac is None else percent(p.attained_frac, 1),
            "-" if p.goodput_requests_per_s is None else f"{figures(p.goodput_requests_per_s, 4)}/s",
            text(p.p99_ttft_s, "s"),
            text(p.p99_tpot_s, "s"),
            message + ", the highest" * (is_best and p.is_met),
            style="bold" if is_best else None,
        )
    out.print(table)
    needed = found.answer.attained
    share = f" with {percent(needed.needed_frac)} of the requests in time" if needed.attained_frac is not None else ""
    each = figures(found.requests_per_s_per_device, 4)
    out.print(
        f"It takes [bold]{figures(found.requests_per_s, 4)} requests/s[/]{share} ({each} for each device); "
        f"beyond that, {found.limited_by} is the limit."
    )
