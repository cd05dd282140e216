"""A table of a page: what stands in its heads and cells, and where they lead."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any

from orrery.scenario.show import cell, heading


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Text, whether it is a number, and the path of the page that it leads to; blank where there is none."""

    text: str
    is_number: bool = False
    path: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Heads, and rows of as many cells; one with a name is a group of rows that is folded until it is wanted."""

    caption: str
    name: str = ""
    heads: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


def grid_of(
    caption: str,
    rows: Sequence[Mapping[str, Any]],
    paths: Sequence[str] = (),
    shown: Callable[[str, Mapping[str, Any]], str] = cell,
) -> Grid:
    """A table of ``rows``, each of which leads to its one of ``paths``; a column of numbers stands at the right."""
    columns = tuple(rows[0])
    numbers = {column for column in columns if all(_is_number(row[column]) for row in rows)}
    return Grid(
        caption=caption,
        heads=tuple(Cell(text=head(column), is_number=column in numbers) for column in columns),
        rows=tuple(
            tuple(
                Cell(
                    text=shown(column, row),
                    is_number=column in numbers,
                    path=path if column == columns[0] else "",
                )
                for column in columns
            )
            for row, path in zip(rows, paths or repeat(""), strict=False)
        ),
    )


LEAST, MOST, OTHERS = 4, 60, "Others"
"""Fewer rows are no group of their own; more are parted once more where they can be."""


def groups_of(grid: Grid, names: Sequence[str], further: Sequence[str] = (), *, least: int = LEAST) -> tuple[Grid, ...]:
    """A long table as groups by the name that each row has, in alphabetical order; what is left stands last.

    ``further`` has a second name for each row, by which a group of more than ``MOST`` is parted.
    """
    count = Counter(names)
    if further:
        names = [f"{name}, {more}" if count[name] > MOST else name for name, more in zip(names, further, strict=True)]
        count = Counter(names)
    rows: dict[str, list[tuple[Cell, ...]]] = {}
    for name, row in zip(names, grid.rows, strict=True):
        rows.setdefault(name if count[name] >= least else OTHERS, []).append(row)
    ordered = sorted(rows, key=lambda name: (name == OTHERS, name.casefold()))
    return tuple(
        replace(grid, name=name, caption=f"{grid.caption}: {name}", rows=tuple(rows[name])) for name in ordered
    )


def head(column: str) -> str:
    """The head of a column in sentence case, without the unit that its cells have."""
    words = heading(column).removeprefix("num ")
    return words[:1].upper() + words[1:]


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
