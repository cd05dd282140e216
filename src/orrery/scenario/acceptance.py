"""Acceptance rates as a user states them: one for all draft tokens, one a position, by rank, or in a file.

``0.85,0.7`` has one a position; ``0.6/0.2/0.1,0.5/0.15`` has the shares of the likeliest, second and
third draft token at each position; a file has a line a position and a column a rank.
"""

from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.user_file import is_user_file, read_user_text, user_path
from orrery.base.user_text import csv_lines

Ranked = tuple[tuple[float, ...], ...]

MAX_BYTES = 100_000
MAX_POSITIONS, MAX_RANKS = 64, 64
NUMERIC = frozenset("0123456789.,/eE+- ")


def read_acceptance(text: str | None) -> Ranked:
    """Shares by position and rank; empty for a blank."""
    if not text:
        return ()
    if set(text) <= NUMERIC:
        rows = [word.split("/") for word in text.split(",")]
        return _checked(rows, text)
    path = user_path(text.strip())
    if not is_user_file(path):
        raise ScenarioError(
            f"acceptance_by_position: got {text!r}, which is no file; write comma-separated shares, such as 0.85,0.7, "
            "with ranks such as 0.6/0.2,0.5/0.1, or the name of a file with a line a position and a column a rank."
        )
    return _from_file(path)


def _from_file(path: Path) -> Ranked:
    where = f"acceptance_by_position: {path.name}"
    text = read_user_text(path, "file of acceptance rates", MAX_BYTES)
    return _checked([[c for c in row if c.strip()] for _, row in csv_lines(text, where)], path.name)


def _checked(rows: list[list[str]], where: str) -> Ranked:
    try:
        found = tuple(tuple(float(cell) for cell in row) for row in rows)
    except ValueError:
        found = ()
    if not found or len(found) > MAX_POSITIONS or not all(0 < len(row) <= MAX_RANKS for row in found):
        raise ScenarioError(
            f"acceptance_by_position: got {where!r}; write comma-separated shares, such as 0.85,0.7, or with ranks "
            f"such as 0.6/0.2,0.5/0.1, for at most {MAX_POSITIONS} positions of {MAX_RANKS} ranks."
        )
    if not all(0.0 <= share <= 1.0 for row in found for share in row):
        raise ScenarioError(f"acceptance_by_position: got {where!r}; write shares from 0 to 1.")
    return found
