"""Words by which measured rows are grouped or left out: a column's own, or some that are made from several columns."""

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import OrreryError, ScenarioError
from orrery.evidence.campaign import campaign_of
from orrery.evidence.columns import check_known
from orrery.evidence.row import Row
from orrery.evidence.split import sides_of
from orrery.evidence.tables import Table

Words = NDArray[np.str_]


def campaigns_of(table: Table) -> Words:
    """The campaign of every row; blank where the row cannot be told, as of an unknown device."""
    rows = (Row(dict(zip(table.columns, cells, strict=True))) for cells in zip(*table.columns.values(), strict=True))
    return np.array([_campaign(row) for row in rows], dtype=np.str_)


def _campaign(row: Row) -> str:
    try:
        return campaign_of(row)
    except OrreryError:
        return ""


MADE: Mapping[str, Callable[[Table], Words]] = {"campaign": campaigns_of, "side": sides_of}
"""Columns that no table needs to have."""


def words_of(table: Table, column: str) -> Words:
    """The words of every row of a table. A table's own ``side`` wins, as does a named campaign."""
    if column in table.columns and column != "campaign":
        return table.words(column)
    return MADE.get(column, lambda t: t.words(column))(table)


def check_by(by: Sequence[str], tables: Sequence[Table]) -> None:
    """Refuse a grouping column that no table has, with the nearest one that some table has."""
    check_known("--by", by, tables, (*MADE,))


def without(tables: Sequence[Table], conditions: Sequence[str]) -> tuple[list[Table], dict[str, int]]:
    """The tables without the rows that meet any condition ``column=pattern``, and how many met each.

    A pattern is one as of file names (``*`` and ``?``). Refuses a condition that no row meets.
    """
    known = dict(_parsed(condition) for condition in conditions)
    check_known("--exclude", [column for column, _ in known.values()], tables, (*MADE,))
    left, counts = list(tables), dict.fromkeys(known, 0)
    for condition, (column, pattern) in known.items():
        found: set[str] = set()
        for number, table in enumerate(left):
            words = words_of(table, column)
            mask = np.array([fnmatchcase(word, pattern) for word in words.tolist()], dtype=np.bool_)
            found.update(words.tolist())
            counts[condition] += int(mask.sum())
            left[number] = table.take(~mask)
        if not counts[condition]:
            listed = "; ".join(sorted(found)[:8])
            raise ScenarioError(f"--exclude: no row has {condition}; words of {column}: {listed}.")
    return left, counts


def _parsed(condition: str) -> tuple[str, tuple[str, str]]:
    column, equals, pattern = condition.partition("=")
    if not equals or not column.strip():
        raise ScenarioError(f"--exclude: got {condition!r}; write column=pattern, such as 'device=h100*'.")
    return condition, (column.strip(), pattern.strip())
