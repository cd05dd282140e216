"""Authors of a paper, where they work and its first day, each with the record that says so; unknown without one.

authors = { value = ["Ada Lovelace", "…"], from = "citations", at = "reference lists that cite arXiv …" }
organisations = { value = ["Analytical Society", "…"], from = "record", at = "head of the paper" }
published = { value = "2024-01-18", from = "record", at = "first version" }
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, cast

from orrery.base.errors import FactError
from orrery.base.sources import Source

KEYS = ("authors", "organisations", "published")
"""Lines at the top of a paper file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bibliography:
    """The people, where they work, and the day; empty and None where no record was found."""

    authors: tuple[str, ...] = ()
    organisations: tuple[str, ...] = ()
    published: date | None = None


UNKNOWN = Bibliography()
"""A bibliography without a record."""


def read_bibliography(file: str, raw: dict[str, Any], sources: Mapping[str, Source]) -> Bibliography:
    """Take these lines out of a paper file. Refuses what names no source or no place in it."""
    names, places, day = (_stated(file, key, raw.pop(key, None), sources) for key in KEYS)
    return Bibliography(
        authors=_names(file, "authors", names),
        organisations=_names(file, "organisations", places),
        published=_day(file, day),
    )


def _names(file: str, key: str, names: Any) -> tuple[str, ...]:
    """Names in their order; none where there is no line."""
    if names is None:
        return ()
    found = tuple(cast("list[Any]", names)) if isinstance(names, list) else ()
    if not found or not all(isinstance(name, str) and name.strip() for name in found):
        raise FactError(f'{file}: {key} is {names!r}; write value = ["First", "Second"].')
    return found


def _day(file: str, day: Any) -> date | None:
    """The day of the first version; None where there is no line."""
    try:
        return date.fromisoformat(day) if day is not None else None
    except (TypeError, ValueError):
        raise FactError(f'{file}: published is {day!r}; write value = "2024-01-18".') from None


def _stated(file: str, key: str, table: Any, sources: Mapping[str, Source]) -> Any:
    """The value of a line; None where there is no line."""
    if table is None:
        return None
    if not isinstance(table, dict) or set(table) != {"value", "from", "at"} or not table["at"]:  # pyright: ignore
        raise FactError(f'{file}: {key} is {table!r}; write {{ value = …, from = "…", at = "…" }}.')
    if table["from"] not in sources:
        raise FactError(f"{file}: {key}: there is no [sources.{table['from']}]; add it or name another.")
    return table["value"]  # pyright: ignore[reportUnknownVariableType]
