"""Rows of CSV traces: our own, Azure's and BurstGPT's, told apart by their header."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.user_text import csv_lines
from orrery.catalog.trace_table import KNOWN, Row, seconds, tokens

Cells = Mapping[str, str | None]
Reader = Callable[[Path, str, Cells], Row | None]


MAX_COLUMNS = 200
"""Published traces have three to eight."""


def csv_rows(path: Path, text: str) -> Iterator[Row]:
    """The requests of a CSV file."""
    lines = csv_lines(text, path, most_columns=MAX_COLUMNS)
    header = [name.strip() for name in next(lines, (1, list[str]()))[1]]
    read = reader(path, header)
    for number, cells in lines:
        named: Cells = {**dict.fromkeys(header), **dict(zip(header, cells, strict=False))}
        if row := read(path, f"line {number}", named):
            yield row


def reader(path: Path, header: Sequence[str]) -> Reader:
    """The row reader for a header."""
    for needed, read in READERS:
        if needed <= set(header):
            return read
    raise ScenarioError(
        f"{path}: line 1: the columns {', '.join(header[:8]) or '(none)'} are no trace's; write {KNOWN}."
    )


def ours(path: Path, place: str, cells: Cells) -> Row:
    """``input_tokens``, ``output_tokens`` and, where the header has it, when, in which session, by whom, from where,
    how urgent."""
    return Row(
        seconds(path, place, "arrival_s", _number(path, place, cells, "arrival_s")) if "arrival_s" in cells else 0.0,
        _tokens(path, place, cells, "input_tokens"),
        _tokens(path, place, cells, "output_tokens"),
        session=(cells.get("session") or "").strip(),
        client=(cells.get("client") or "").strip(),
        priority=_number(path, place, cells, "priority") if (cells.get("priority") or "").strip() else None,
        origin=(cells.get("origin") or "").strip(),
    )


def azure(path: Path, place: str, cells: Cells) -> Row:
    """Azure's LLM inference traces of 2023 and 2024."""
    at = _moment(path, place, _cell(path, place, cells, "TIMESTAMP"))
    return Row(at, _tokens(path, place, cells, "ContextTokens"), _tokens(path, place, cells, "GeneratedTokens"))


def burstgpt(path: Path, place: str, cells: Cells) -> Row | None:
    """BurstGPT; requests that failed (no answer) are left out. Later versions name the session of a conversation."""
    if (cells.get("Response tokens") or "").strip() in ("0", "0.0"):
        return None
    return Row(
        seconds(path, place, "Timestamp", _number(path, place, cells, "Timestamp")),
        _tokens(path, place, cells, "Request tokens"),
        _tokens(path, place, cells, "Response tokens"),
        session=(cells.get("Session ID") or "").strip(),
    )


READERS: tuple[tuple[set[str], Reader], ...] = (
    ({"input_tokens", "output_tokens"}, ours),
    ({"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, azure),
    ({"Timestamp", "Request tokens", "Response tokens"}, burstgpt),
)
"""The columns that tell a format, and what reads its rows."""


def _cell(path: Path, place: str, cells: Cells, column: str) -> str:
    if not (cell := (cells.get(column) or "").strip()):
        raise ScenarioError(f"{path}: {place}: {column} is blank; write a number.")
    return cell


def _number(path: Path, place: str, cells: Cells, column: str) -> float:
    cell = _cell(path, place, cells, column)
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ScenarioError(f"{path}: {place}: {column}: got {cell[:40]!r}; write a number.")
    return value


def _tokens(path: Path, place: str, cells: Cells, column: str) -> int:
    return tokens(path, place, column, _number(path, place, cells, column))


def _moment(path: Path, place: str, text: str) -> float:
    """Seconds since 1970 of ``2023-11-16 18:17:03.9799600``; Python reads six of the seven digits, we keep all."""
    whole, _, fraction = text.partition(".")
    fraction, zone = (fraction[:-6], fraction[-6:]) if fraction[-6:-5] in ("+", "-") else (fraction, "")
    try:
        moment = datetime.fromisoformat(whole + (zone or ("" if {"+", "-"} & set(whole[10:]) else "+00:00")))
        return moment.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)
    except ValueError:
        raise ScenarioError(
            f"{path}: {place}: TIMESTAMP: got {text[:40]!r}; write such as 2023-11-16 18:17:03.9799600."
        ) from None
