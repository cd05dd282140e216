"""Facts as tables in the terminal."""

from collections.abc import Mapping
from textwrap import fill
from typing import Any

from rich.box import SIMPLE
from rich.table import Table as RichTable

from orrery.cli.output import console
from orrery.scenario.show import Table, readable

TEXT_COLUMNS = 8
"""A column of words is no narrower than this where it could be wider."""

HEADING_COLUMNS = 10
"""Headings of numbers break here, so that they are hardly wider than their numbers."""

MANY = 1_000_000
"""Counts from here on are said in billions."""


def print_facts(table: Table) -> None:
    """A table of what is known, columns as the rows have them; wide values wrap."""
    out = console()
    columns = list(dict.fromkeys(key for row in table.rows for key in row))
    drawn = RichTable(title=table.title, title_justify="left", box=SIMPLE, pad_edge=False)
    for column in columns:
        is_number = all(isinstance(row.get(column), int | float) for row in table.rows)
        longest = max((len(str(row.get(column, ""))) for row in table.rows), default=0)
        drawn.add_column(
            fill(heading(column), HEADING_COLUMNS, break_long_words=False) if is_number else heading(column),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number or column in ("name", "fact"),
            min_width=None if is_number else min(longest, TEXT_COLUMNS),
        )
    for row in table.rows:
        drawn.add_row(*(_cell(column, row) for column in columns))
    out.print(drawn)
    for note in table.notes:
        out.print(note, markup=False)


def _cell(column: str, row: Mapping[str, Any]) -> str:
    """One cell; in lists, large counts are in billions."""
    value = row.get(column)
    if column.startswith("num_") and isinstance(value, int) and value >= MANY:
        return f"{value / 1e9:.3g} B"
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
