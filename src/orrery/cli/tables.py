"""Facts as tables in the terminal."""

from orrery.cli.output import console
from orrery.cli.sheet import Sheet
from orrery.scenario.show import Table, cell, columns_of, heading

WHOLE = ("name", "fact")
"""Columns of words that are never broken into lines."""


def print_facts(table: Table) -> None:
    """A table of what is known, columns as the rows have them; wide values wrap, or stand below their row."""
    out = console()
    columns = columns_of(table)
    drawn = Sheet(title=table.title)
    for column in columns:
        is_number = all(isinstance(row.get(column), int | float) for row in table.rows)
        is_words = not (is_number or column in WHOLE)
        drawn.add_column(
            heading(column),
            justify="right" if is_number else "left",
            wraps=is_words,
            minor=0 if is_number or column in WHOLE else 1,
        )
    for row in table.rows:
        drawn.add_row(*(cell(column, row) for column in columns))
    out.print(drawn)
    for note in table.notes:
        out.print(note, markup=False)
