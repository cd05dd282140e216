"""Facts as tables in the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.box import SIMPLE
from rich.table import Table as RichTable

from orrery.cli.output import console
from orrery.scenario.show import Table, readable


def print_facts(table: Table) -> None:
    """A table of what is known, columns as the rows have them; wide values wrap."""
    out = console()
    columns = list(dict.fromkeys(key for row in table.rows for key in row))
    drawn = RichTable(title=table.title, title_justify="left", box=SIMPLE, pad_edge=False)
    for column in columns:
        is_number = all(isinstance(row.get(column), int | float) for row in table.rows)
        drawn.add_column(
            heading(column),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number or column in ("name", "fact"),
        )
    for row in table.rows:
        drawn.add_row(*(readable(_unit_name(column, row), row.get(column)) for column in columns))
    out.print(drawn)
    for note in table.notes:
        out.print(note, markup=False)


def heading(column: str) -> str:
    """A column's name without the unit that its values carry."""
    for unit in ("_bytes_per_s", "_flops_per_s", "_bytes", "_w", "_s", "_usd"):
        if column.endswith(unit):
            return column.removesuffix(unit).replace("_", " ")
    return column.replace("_", " ")


def _unit_name(column: str, row: Mapping[str, Any]) -> str:
    """Where a row is a fact, its own name says the unit."""
    return str(row.get("fact", "")) if column == "value" else column
