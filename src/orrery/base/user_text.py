"""Bounded readers of a user's JSON, TOML or CSV text: limits on nesting, values, rows, columns and cells."""

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import tomli

from orrery.base.errors import MAX_LISTED, OrreryError, ScenarioError

MAX_VALUES = 50_000_000
"""Limit on the values of one JSON text: each takes some 60 bytes of memory. ShareGPT as published has ten million."""

MAX_TOML_LETTERS = 4_000_000
"""Largest number of letters of one TOML text (scenarios, devices and papers, which people write): a TOML reader in
Python takes a second for some two million."""

MAX_COLUMNS, MAX_ROWS, MAX_CELLS = 2_000, 12_000_000, 60_000_000
"""Limits on one CSV text. A cell has at most 131,072 letters, which is the reader's own bound."""


def json_value(
    text: str, where: object, write: str, *, is_unique: bool = False, error: type[OrreryError] = ScenarioError
) -> Any:
    """The value that a JSON text says; ``write`` ends the message where it says none.

    ``is_unique``: a key that stands twice in one object is refused, for readers differ in which of the two they take.
    """
    try:
        return parsed_json(text, is_unique=is_unique)
    except ValueError as wrong:
        raise error(f"{where}: not valid JSON: {wrong}; {write}.") from None


def parsed_json(text: str, *, is_unique: bool = False) -> Any:
    """The same; ValueError says only why it is none."""
    num_values = text.count(",") + text.count("[") + text.count("{")
    if num_values > MAX_VALUES:
        raise ValueError(f"some {num_values:,} values are too many; at most {MAX_VALUES:,} are read")
    try:
        return json.loads(text, object_pairs_hook=_unique if is_unique else None)
    except json.JSONDecodeError as wrong:
        place = f"line {wrong.lineno}, column {wrong.colno}" if "\n" in text.strip() else f"column {wrong.colno}"
        raise ValueError(f"{wrong.msg} ({place})") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except _Twice:
        raise
    except ValueError:
        raise ValueError("a number in it is too long") from None


class _Twice(ValueError):
    """A key stands twice in one object."""


def toml_tables(text: str, where: object, write: str, *, error: type[OrreryError] = ScenarioError) -> dict[str, Any]:
    """The tables of a TOML text; ``write`` ends the message where it is none."""
    if len(text) > MAX_TOML_LETTERS:
        raise error(f"{where}: {len(text):,} letters are too many for a TOML file of this kind; {write}.")
    try:
        return tomli.loads(text)
    except RecursionError:
        raise error(f"{where}: not valid TOML: too deeply nested; {write}.") from None
    except ValueError as wrong:  # TOML's own errors, and numbers too long to read
        raise error(f"{where}: not valid TOML: {wrong}; {write}.") from None


def csv_lines(
    text: str, where: object, *, most_columns: int = MAX_COLUMNS, error: type[OrreryError] = ScenarioError
) -> Iterator[tuple[int, list[str]]]:
    """(line number, cells) of each line that has any; the first is the header."""
    lines = csv.reader(io.StringIO(text))
    num_rows = num_cells = 0
    try:
        for cells in lines:
            num_rows, num_cells = num_rows + 1, num_cells + len(cells)
            if len(cells) > most_columns:
                raise error(
                    f"{where}: line {lines.line_num}: {len(cells):,} columns are too many; {most_columns:,} are read."
                )
            if num_rows > MAX_ROWS or num_cells > MAX_CELLS:
                raise error(f"{where}: more than {MAX_ROWS:,} rows or {MAX_CELLS:,} cells; split the file.")
            if cells:
                yield lines.line_num, cells
    except csv.Error as wrong:
        raise error(f"{where}: line {lines.line_num}: cannot be read as CSV text: {wrong}.") from None


def csv_table(
    text: str, where: object, *, error: type[OrreryError] = ScenarioError
) -> tuple[list[str], Iterator[list[str]]]:
    """A header of names, each once, and the rows below it, each as long as the header."""
    lines = csv_lines(text, where, error=error)
    first = next(lines, None)
    header = [name.strip() for name in first[1]] if first else []
    if not any(header):
        raise error(f"{where}: is empty; the first line must name the columns.")
    if len(set(header)) != len(header):
        twice = sorted(name for name, count in Counter(header).items() if count > 1)
        shown = ", ".join(twice[:MAX_LISTED]) + (", …" if len(twice) > MAX_LISTED else "")
        raise error(f"{where}: column {shown} is named twice.")
    return header, _rows(lines, header, where, error)


def _rows(
    lines: Iterator[tuple[int, list[str]]], header: Sequence[str], where: object, error: type[OrreryError]
) -> Iterator[list[str]]:
    for number, cells in lines:
        if len(cells) != len(header):
            raise error(f"{where}, row {number}: has {len(cells)} cells, the header names {len(header)}.")
        yield list(map(str.strip, cells))


def table_in(
    tables: Mapping[str, Any], key: str, where: object, *, error: type[OrreryError] = ScenarioError
) -> dict[str, Any]:
    """The table ``[key]`` of a TOML file; empty where there is none, refused where the key is anything else."""
    found = tables.get(key, {})
    if not isinstance(found, dict):
        raise error(f"{where}: {key}: got {repr(found)[:60]}; write a table [{key}].")
    return cast("dict[str, Any]", found)


def tables_in(
    tables: Mapping[str, Any], key: str, where: object, *, error: type[OrreryError] = ScenarioError
) -> list[dict[str, Any]]:
    """The tables ``[[key]]`` of a TOML file, none where there is none."""
    found = tables.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in cast("list[Any]", found)):
        raise error(f"{where}: {key}: got {repr(cast(Any, found))[:60]}; write tables [[{key}]].")
    return cast("list[dict[str, Any]]", found)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise _Twice(f"the key {twice[:80]!r} stands twice in one table; keep one of them")
    return found
