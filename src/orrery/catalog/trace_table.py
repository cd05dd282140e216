"""A trace as columns, and the checks that every format's rows go through; errors name file, line and cell."""

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.sources import Fact
from orrery.serving.requests import NONE
from orrery.serving.synthesis.lengths import LONGEST_TOKENS

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

LATEST_S = 1e12
"""Beyond this, thirty thousand years, an arrival is a slip: milliseconds or nanoseconds where seconds are meant."""

KNOWN = (
    "arrival_s,input_tokens,output_tokens; Azure, BurstGPT, Mooncake, Qwen-Bailian and ShareGPT files are understood "
    "as published"
)

NO_ARRIVALS = "no arrival times; give --rate with the lengths to say how often they come"
"""The message for a trace whose requests all arrive at 0."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Requests in order of arrival: seconds from the first, prompt and answer lengths.

    Optional columns are empty where the trace does not say: conversations, clients, priorities, and the ids of the
    leading whole blocks of each prompt (equal ids hold equal tokens after equal beginnings).
    """

    name: str
    arrival_s: Floats
    input_tokens: Counts
    output_tokens: Counts
    facts: tuple[Fact, ...] = ()
    notes: tuple[str, ...] = ()
    session: Counts = field(default_factory=NONE.copy)  # -1 = none
    client: Counts = field(default_factory=NONE.copy)
    priority: Floats = field(default_factory=lambda: np.zeros(0))  # lower goes first
    prefix_start: Counts = field(default_factory=NONE.copy)  # n + 1 offsets into prefix_ids
    prefix_ids: Counts = field(default_factory=NONE.copy)
    prefix_block_tokens: int = 0  # 0 = the trace does not say what is shared
    origin: Counts = field(default_factory=NONE.copy)  # number of each one's name in origins; -1 = none
    origins: tuple[str, ...] = ()


class Row(NamedTuple):
    """One request as a format's reader leaves it; session and client may be any names, "" = none."""

    arrival_s: float
    input_tokens: int
    output_tokens: int
    session: Hashable = ""
    client: Hashable = ""
    priority: float | None = None
    blocks: Sequence[int] = ()
    origin: str = ""


def gathered(path: Path, rows: Sequence[Row], notes: tuple[str, ...] = (), block_tokens: int = 0) -> Trace:
    """The rows of a file as a trace: in order of arrival, from 0, names and blocks numbered 0, 1, …."""
    if not rows:
        raise ScenarioError(f"{path}: holds no request; write a header and a line for each: {KNOWN}.")
    if late := sum(b.arrival_s < a.arrival_s for a, b in pairwise(rows)):
        notes = (
            *notes,
            f"{path.name}: {late:,} of {len(rows):,} rows come before the one above them; sorted by arrival",
        )
    rows = sorted(rows, key=lambda r: r.arrival_s)
    arrival_s = np.array([r.arrival_s for r in rows])
    if len(rows) > 1 and arrival_s[-1] == arrival_s[0]:
        notes = (*notes, f"{path.name}: {NO_ARRIVALS}")
    inputs = np.array([r.input_tokens for r in rows], dtype=np.int64)
    start, ids = _blocks(path, rows, inputs, block_tokens)
    origins = tuple(dict.fromkeys(r.origin for r in rows if r.origin))
    return Trace(
        name=path.name,
        arrival_s=arrival_s - arrival_s[0],
        notes=notes,
        input_tokens=inputs,
        output_tokens=np.array([r.output_tokens for r in rows], dtype=np.int64),
        session=_numbered(r.session for r in rows),
        client=_clients(rows),
        priority=_priorities(rows),
        prefix_start=start,
        prefix_ids=ids,
        prefix_block_tokens=block_tokens if ids.size else 0,
        origin=_numbered(r.origin for r in rows),
        origins=origins,
    )


def _numbered(names: Iterable[Hashable]) -> Counts:
    """0, 1, … in order of first use, -1 for ""; empty when every name is ""."""
    known: dict[Hashable, int] = {"": -1}
    numbers = [known.setdefault(name, len(known) - 1) for name in names]
    return np.array(numbers, dtype=np.int64) if len(known) > 1 else NONE.copy()


def _clients(rows: Sequence[Row]) -> Counts:
    """Numbered from 0; the nameless are one client more."""
    numbers = _numbered(r.client for r in rows)
    return np.where(numbers < 0, numbers.max() + 1, numbers) if numbers.size else numbers


def _priorities(rows: Sequence[Row]) -> Floats:
    if all(r.priority is None for r in rows):
        return np.zeros(0)
    return np.array([r.priority or 0.0 for r in rows])


def _blocks(path: Path, rows: Sequence[Row], input_tokens: Counts, block_tokens: int) -> tuple[Counts, Counts]:
    """Whole blocks of the prompts, ids numbered from 0. A last, part-filled block shares nothing that a cache keeps."""
    if not block_tokens or not any(r.blocks for r in rows):
        return NONE.copy(), NONE.copy()
    retained = [row.blocks[: tokens // block_tokens] for row, tokens in zip(rows, input_tokens.tolist(), strict=True)]
    start = np.concatenate(
        (np.zeros(1, dtype=np.int64), np.cumsum([len(blocks) for blocks in retained], dtype=np.int64))
    )
    try:
        flat = np.fromiter((b for blocks in retained for b in blocks), dtype=np.uint64, count=int(start[-1]))
    except OverflowError:
        raise ScenarioError(f"{path}: hash_ids: holds an id outside 0 to 2^64 - 1; write such ids.") from None
    return start, np.unique(flat, return_inverse=True)[1].astype(np.int64)


def seconds(path: Path, place: str, column: str, value: float) -> float:
    """A moment since some start: finite, not negative, not absurdly late."""
    if not 0 <= value <= LATEST_S:
        raise ScenarioError(f"{path}: {place}: {column}: got {value:g}; write seconds from 0 to {LATEST_S:g}.")
    return value


def tokens(path: Path, place: str, column: str, value: float) -> int:
    """A length: a whole number that a request can have; 0 becomes 1."""
    if not 0 <= value <= LONGEST_TOKENS or value != int(value):
        raise ScenarioError(f"{path}: {place}: {column}: got {value:g}; write a whole number up to {LONGEST_TOKENS:,}.")
    return max(1, int(value))


def is_number(value: Any) -> bool:
    """Whether a value of a JSON file is a finite number that a float can hold."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False
