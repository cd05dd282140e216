"""Ways to pay for a plan, as a person reads them."""

from orrery.base.units import figures, percent
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.money import Money

MARKS = (1, 6, 12, 24, 36, 48, 60)
"""Months whose cash is shown; ``--json`` has every one."""


def print_money(money: Money) -> None:
    """A month of each way, cash in all until some months, and what follows."""
    months = len(money.ways[0].cash_usd)
    marks = [m for m in MARKS if m < months] + [months]
    table = Sheet("", "a month", "fixed", "$/M output", "API costs more from", title="Ways to pay for plan 1")
    for mark in marks:
        table.add_column(f"paid by month {mark}", minor=1)
    for way in money.ways:
        even = percent(way.break_even_frac) if way.break_even_frac <= 1.0 and way.name != "api" else "-"
        paid = [f"${figures(way.cash_usd[m - 1], 4)}" for m in marks]
        table.add_row(
            way.name,
            f"${figures(way.month_usd, 4)}",
            f"${figures(way.fixed_usd, 4)}",
            f"${figures(way.million_output_usd)}",
            even,
            *paid,
        )
    out = console()
    out.print(table)
    for sentence in money.sentences:
        out.print(sentence, markup=False)
