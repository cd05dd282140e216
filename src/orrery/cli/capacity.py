"""``orrery simulate --find-capacity``: the highest rate, what limits it, and the rates that were tried."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.box import SIMPLE
from rich.table import Table

from orrery.base.units import text
from orrery.cli.output import console, print_infeasible, print_json, print_notes
from orrery.cli.progress import bar, patience
from orrery.cli.serving_result import print_serving_result
from orrery.cli.simulate_report import write_result
from orrery.scenario.ask import CannotBe
from orrery.scenario.capacity import Capacity, find_capacity

if TYPE_CHECKING:
    from orrery.scenario.schema import Scenario

LIKELY_PROBES = 9
"""What a search takes, for the bar; it may take more."""


def run_capacity(scenario: "Scenario", is_json: bool, out: tuple[Path, ...]) -> int:
    """Search, write, print; the exit code."""
    with bar("rates tried") as tell:
        tried: list[object] = []

        def on_probe(probe: object) -> None:
            tried.append(probe)
            tell(len(tried), max(LIKELY_PROBES, len(tried)))

        found = find_capacity(scenario, patience=patience(), on_probe=on_probe)
    if isinstance(found, CannotBe):
        return print_infeasible(found, is_json)
    plain = found.to_json()
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
    table = Table(box=SIMPLE, pad_edge=False, title="Rates tried", title_justify="left")
    for column in ("requests/s", "within the objectives", "goodput", "p99 TTFT", "p99 TPOT", ""):
        table.add_column(column, justify="left" if not column else "right")
    for p in found.probes:
        said = "holds" if p.is_met else f"{p.limited_by}" + ("" if p.is_sustained else ", the queue grows")
        table.add_row(
            f"{p.requests_per_s:.4g}", "-" if p.attained_frac is None else f"{p.attained_frac:.1%}",
            "-" if p.goodput_requests_per_s is None else f"{p.goodput_requests_per_s:.4g}/s", text(p.p99_ttft_s, "s"),
            text(p.p99_tpot_s, "s"), said, style="bold" if p.requests_per_s == found.requests_per_s else None,
        )  # fmt: skip
    out.print(table)
    needed = found.answer.attained
    share = f" with {needed.needed_frac:.0%} of the requests in time" if needed.attained_frac is not None else ""
    out.print(
        f"It takes [bold]{found.requests_per_s:.4g} requests/s[/]{share} "
        f"({found.requests_per_s_per_device:.4g} for each device); beyond that, {found.limited_by} is the limit."
    )
