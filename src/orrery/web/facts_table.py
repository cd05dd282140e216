"""Tables of what techniques do, as the command prints them, ready for a page."""

from collections.abc import Iterable
from dataclasses import dataclass

from orrery.scenario.show import Table, cell, columns_of, heading


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsTable:
    """A table of formatted cells; ``is_number`` says of each column whether its cells line up at the right."""

    title: str
    columns: tuple[str, ...]
    is_number: tuple[bool, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def facts_tables(tables: Iterable[Table]) -> tuple[FactsTable, ...]:
    """Return the tables that have rows, with the columns that hold anything."""
    return tuple(_facts_table(table, _filled(table)) for table in tables if table.rows)


def _filled(table: Table) -> list[str]:
    return [column for column in columns_of(table) if any(cell(column, row) for row in table.rows)]


def _facts_table(table: Table, columns: list[str]) -> FactsTable:
    return FactsTable(
        title=table.title,
        columns=tuple(map(heading, columns)),
        is_number=tuple(all(_is_number(row.get(column)) for row in table.rows) for column in columns),
        rows=tuple(tuple(cell(column, row) for column in columns) for row in table.rows),
        notes=table.notes,
    )


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
