"""Trace files as their publishers write them; the format is told from the content, and errors name file and line.

=============  ==========  =============================================================================
ours           CSV         ``arrival_s,input_tokens,output_tokens`` (arrivals optional)
Azure LLM      CSV         ``TIMESTAMP,ContextTokens,GeneratedTokens``, a 7-digit fraction of a second
BurstGPT       CSV         ``Timestamp,Model,Request tokens,Response tokens,…``; failed rows (0 tokens) left out
Mooncake       JSON lines  ``timestamp`` in milliseconds, ``input_length``, ``output_length``
ShareGPT       JSON array  conversations; the first prompt and answer, 4 characters a token
=============  ==========  =============================================================================

Any of them may be gzipped (``.gz``).
"""

import csv
import gzip
import io
import json
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError

Row = tuple[float, int, int]
Columns = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64], tuple[str, ...]]

CHARACTERS_PER_TOKEN = 4.0
"""English text under common tokenizers, as OpenAI's tokenizer page puts it; ShareGPT holds text, not token counts."""

LONGEST_TOKENS = 100_000_000
"""Beyond this a length is a slip, not a request."""

KNOWN = "arrival_s,input_tokens,output_tokens; Azure, BurstGPT, Mooncake and ShareGPT files are understood as published"


def read_trace(path: Path) -> Columns:
    """Arrivals, prompt and answer lengths, in order of arrival from 0, and what to know about them."""
    text = _text(path)
    first = text.lstrip()[:1]
    notes: tuple[str, ...] = ()
    if first == "[":
        rows, notes = (
            _sharegpt(path, text),
            (f"{path.name}: token counts taken as characters / {CHARACTERS_PER_TOKEN:g}",),
        )
    elif first == "{":
        rows = [_mooncake(path, number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    else:
        rows = list(_csv(path, text))
    if not rows:
        raise ScenarioError(f"{path}: holds no request; write a header and a line for each: {KNOWN}.")
    table = np.array(sorted(rows, key=lambda r: r[0]), dtype=np.float64)
    if len(rows) > 1 and table[-1, 0] == table[0, 0]:
        notes = (*notes, f"{path.name}: no arrival times; give --rate with the lengths to say how often they come")
    return table[:, 0] - table[0, 0], table[:, 1].astype(np.int64), table[:, 2].astype(np.int64), notes


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or error
        raise ScenarioError(f"{path}: cannot be read: {reason}; give a trace file or a shipped name.") from None
    except (UnicodeDecodeError, EOFError, zlib.error):
        raise ScenarioError(f"{path}: is neither text nor gzipped text; a trace has columns {KNOWN}.") from None


def _csv(path: Path, text: str) -> Iterator[Row]:
    lines = csv.reader(io.StringIO(text))
    number = 1
    try:
        first = next(lines, list[str]())
        header = [h.strip() for h in first]
        read = _reader(path, header)
        for number, cells in enumerate(lines, 2):
            if cells and (row := read(number, dict(zip(header, cells, strict=False)))):
                yield row
    except csv.Error as error:
        raise ScenarioError(f"{path}: line {number}: not valid CSV: {error}.") from None


def _reader(path: Path, header: Sequence[str]) -> Callable[[int, dict[str, str]], Row | None]:
    """The row reader for a header."""

    def ours(number: int, cells: dict[str, str]) -> Row:
        at = _number(path, number, cells, "arrival_s") if "arrival_s" in header else 0.0
        return at, _tokens(path, number, cells, "input_tokens"), _tokens(path, number, cells, "output_tokens")

    def azure(number: int, cells: dict[str, str]) -> Row:
        at = _moment(path, number, cells["TIMESTAMP"])
        return at, _tokens(path, number, cells, "ContextTokens"), _tokens(path, number, cells, "GeneratedTokens")

    def burstgpt(number: int, cells: dict[str, str]) -> Row | None:
        if cells.get("Response tokens", "").strip() in ("0", "0.0"):
            return None
        at = _number(path, number, cells, "Timestamp")
        return at, _tokens(path, number, cells, "Request tokens"), _tokens(path, number, cells, "Response tokens")

    readers: tuple[tuple[set[str], Callable[[int, dict[str, str]], Row | None]], ...] = (
        ({"input_tokens", "output_tokens"}, ours),
        ({"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, azure),
        ({"Timestamp", "Request tokens", "Response tokens"}, burstgpt),
    )
    for needed, reader in readers:
        if needed <= set(header):
            return reader
    raise ScenarioError(
        f"{path}: line 1: the columns {', '.join(header[:8]) or '(none)'} are no trace's; write {KNOWN}."
    )


def _cell(path: Path, number: int, cells: dict[str, str], column: str) -> str:
    if (cell := cells.get(column)) is None or not cell.strip():
        raise ScenarioError(f"{path}: line {number}: {column} is blank; write a number.")
    return cell.strip()


def _number(path: Path, number: int, cells: dict[str, str], column: str) -> float:
    cell = _cell(path, number, cells, column)
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ScenarioError(f"{path}: line {number}: {column}: got {cell!r}; write a number.")
    return value


def _tokens(path: Path, number: int, cells: dict[str, str], column: str) -> int:
    value = _number(path, number, cells, column)
    return _checked(path, number, column, value)


def _checked(path: Path, number: int, column: str, value: float) -> int:
    if value != int(value) or not 0 <= value <= LONGEST_TOKENS:
        raise ScenarioError(
            f"{path}: line {number}: {column}: got {value:g}; write a whole number up to {LONGEST_TOKENS:,}."
        )
    return max(1, int(value))


def _moment(path: Path, number: int, text: str) -> float:
    """Seconds since 1970 of ``2023-11-16 18:17:03.9799600``; Python reads six of the seven digits, we keep all."""
    whole, _, fraction = text.strip().partition(".")
    fraction, zone = (fraction[:-6], fraction[-6:]) if fraction[-6:-5] in ("+", "-") else (fraction, "")
    try:
        moment = datetime.fromisoformat(whole + (zone or ("" if "+" in whole[10:] else "+00:00")))
        return moment.timestamp() + (float(f"0.{fraction}") if fraction else 0.0)
    except ValueError:
        raise ScenarioError(
            f"{path}: line {number}: TIMESTAMP: got {text!r}; write such as 2023-11-16 18:17:03.9799600."
        ) from None


def _mooncake(path: Path, number: int, line: str) -> Row:
    try:
        entry = json.loads(line)
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{path}: line {number}: not valid JSON: {error.msg}; write one object a line.") from None
    names = ("timestamp", "input_length", "output_length")
    if not isinstance(entry, dict) or any(not _is_number(cast(dict[str, Any], entry).get(n)) for n in names):
        raise ScenarioError(f"{path}: line {number}: needs numbers {', '.join(names)}, as Mooncake's traces have.")
    at_ms, prompt, answer = (float(cast(dict[str, Any], entry)[n]) for n in names)
    return at_ms / 1e3, _checked(path, number, names[1], prompt), _checked(path, number, names[2], answer)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _sharegpt(path: Path, text: str) -> list[Row]:
    try:
        entries = cast(list[Any], json.loads(text))
    except json.JSONDecodeError as error:
        raise ScenarioError(f"{path}: line {error.lineno}: not valid JSON: {error.msg}.") from None
    rows: list[Row] = []
    for entry in entries:
        turns = cast(dict[str, Any], entry).get("conversations") if isinstance(entry, dict) else None
        if not isinstance(turns, list):
            raise ScenarioError(f"{path}: entry {len(rows) + 1}: has no conversations; ShareGPT entries do.")
        said = [
            str(cast(dict[str, Any], t).get("value", "")) for t in cast(list[Any], turns)[:2] if isinstance(t, dict)
        ]
        if len(said) == 2:
            prompt, answer = (max(1, round(len(s) / CHARACTERS_PER_TOKEN)) for s in said)
            rows.append((0.0, prompt, answer))
    return rows
