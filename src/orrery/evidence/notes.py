"""Notes of measured tables as columns of the schema: ``notes.toml``, with its sources."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from orrery.base.sources import Source, cited, read_toml

FILE = Path(__file__).parent / "notes.toml"

STANDS_OVER = ("num_devices",)
"""Columns in which a source's own words correct the figure beside them; elsewhere a filled cell stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """Words of a note, and the columns that they mean in rows whose other cells are as said."""

    words: str
    where: Mapping[str, str]
    columns: Mapping[str, str]
    source: Source
    at: str


@cache
def sayings() -> tuple[Saying, ...]:
    """All of them, as the file has them."""
    raw = read_toml(FILE)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    known = ("words", "where", "columns", "source", "at")
    return tuple(
        Saying(
            words=entry["words"],
            where=entry.get("where", {}),
            columns=entry["columns"],
            source=cited(f"{FILE.name}, {entry['words']!r}", entry, known, sources),
            at=entry["at"],
        )
        for entry in raw["note"]
    )


def with_notes(cells: Mapping[str, str]) -> Mapping[str, str]:
    """The cells of a row with the columns that its note means."""
    note = cells.get("note", "").casefold()
    found: dict[str, str] = {}
    for one in sayings() if note else ():
        if one.words in note and all(cells.get(c, "") == v for c, v in one.where.items()):
            found |= {c: v for c, v in one.columns.items() if c in STANDS_OVER or not cells.get(c)}
    return {**cells, **found} if found else cells
