"""Facts as tables in the terminal."""

from collections.abc import Mapping
from typing import Any

from orrery.base.units import figures
from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.show import Table, readable

MANY = 1_000_000
"""Counts from here on are said in billions."""

WHOLE = ("name", "fact")
"""Columns of words that are never broken into lines."""


def print_facts(table: Table) -> None:
    """A table of what is known, columns as the rows have them; wide values wrap, or stand below their row."""
    out = console()
    columns = list(dict.fromkeys(key for row in table.rows for key in row))
    drawn = Sheet(title=table.title)
    for column in columns:
        is_number = all(isinstance(row.get(column), int | float) for row in table.rows)
        is_words = not (is_number or column in WHOLE)
        drawn.add_column(heading(column), justify="right" if is_number else "left", wraps=is_words,
                         minor=0 if is_number or column in WHOLE else 1)  # fmt: skip
    for row in table.rows:
        drawn.add_row(*(_cell(column, row) for column in columns))
    out.print(drawn)
    for note in table.notes:
        out.print(note, markup=False)


def _cell(column: str, row: Mapping[str, Any]) -> str:
    """One cell; in lists, large counts are in billions."""
    value = row.get(column)
    if column.startswith("num_") and isinstance(value, int) and value >= MANY:
        return f"{figures(value / 1e9)} B"
    return readable(_unit_name(column, row), value)


def heading(column: str) -> str:
    """A column's name without the unit that its values carry."""
    for unit in ("_bytes_per_s", "_flops_per_s", "_bytes", "_w", "_s", "_usd"):
        if column.endswith(unit):
            return column.removesuffix(unit).replace("_", " ")
    return column.replace("_", " ")


def _unit_name(column: str, row: Mapping[str, Any]) -> str:
    """Where a row is a fact, its own name says the unit."""
    return str(row.get("fact", "")) if column == "value" else column
