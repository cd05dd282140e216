"""Recorded sessions of agents from a CSV file: a row a request, times from the session's own start."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from orrery.base.errors import ScenarioError, UnknownName
from orrery.base.user_file import is_user_file, read_user_text
from orrery.base.user_text import csv_lines
from orrery.fleet.agents.turns import Turns

FOLDER = Path(__file__).parent / "facts" / "sessions"
"""Made-up sessions to begin with; no user's data travels with the project."""

MAX_COLUMNS = 200
NEEDED = ("session", "t_s", "input_tokens", "output_tokens")
SHARED = ("shared_prefix_tokens", "shared_prefix_blocks")


def session_names() -> tuple[str, ...]:
    """The sessions that ship with the project."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.csv")))


def session_file(name_or_path: str) -> Path:
    """The file of shipped sessions of that name, or the path itself."""
    if name_or_path in session_names():
        return FOLDER / f"{name_or_path}.csv"
    path = Path(name_or_path)
    if path.suffix or is_user_file(path):
        return path
    raise UnknownName("session trace", name_or_path, session_names())


def read_sessions(path: Path, block_tokens: int) -> Turns:
    """Return the turns of a file, sessions and chains numbered from 0.

    Columns: session, t_s, input_tokens, output_tokens, shared_prefix_tokens (or shared_prefix_blocks, of
    ``block_tokens`` each), and agent and think_time_s where there are sub-agents and pauses.
    """
    lines = csv_lines(read_user_text(path, "trace of sessions (CSV)"), path, most_columns=MAX_COLUMNS)
    header = [name.strip() for name in next(lines, (1, list[str]()))[1]]
    missing = [name for name in NEEDED if name not in header]
    if missing or not set(SHARED) & set(header):
        columns = ", ".join((*NEEDED, SHARED[0]))
        raise ScenarioError(
            f"{path}: line 1: no trace of sessions; write the columns {columns} (and agent, think_time_s)."
        )
    column = next(name for name in SHARED if name in header)
    each = 1 if column == SHARED[0] else block_tokens
    sessions: dict[str, int] = {}
    chains: dict[tuple[str, str], int] = {}
    rows: list[tuple[float, int, int, int, int, int, float]] = []
    for number, cells in lines:
        row = dict(zip(header, cells, strict=False))
        place = f"{path}: line {number}"
        name = row.get("session", "")
        session = sessions.setdefault(name, len(sessions))
        chain = chains.setdefault((name, row.get("agent") or ""), len(chains))
        prompt, output = (int(_number(place, row, key)) for key in ("input_tokens", "output_tokens"))
        shared = min(int(_number(place, row, column)) * each, prompt)
        think = _number(place, row, "think_time_s") if row.get("think_time_s") else 0.0
        rows.append((_number(place, row, "t_s"), session, chain, prompt, output, shared, think))
    if not rows:
        raise ScenarioError(f"{path}: holds no request; write a line for each under the header.")
    table = np.array(rows, dtype=np.float64)
    whole = table.astype(np.int64)
    return Turns(
        at_s=table[:, 0],
        session=whole[:, 1],
        chain=whole[:, 2],
        input_tokens=whole[:, 3],
        output_tokens=whole[:, 4],
        shared_tokens=whole[:, 5],
        think_s=table[:, 6],
    )


def _number(place: str, row: Mapping[str, str], key: str) -> float:
    text = row.get(key, "")
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0.0 <= found < 1e15:
        raise ScenarioError(f"{place}: {key}: got {text[:40]!r}; write a number from 0.")
    return found
