"""Files of numbers that users give: seconds of ranks round by round, and lengths of sequences."""

import math
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError
from orrery.base.user_file import is_user_file, read_user_text, user_path
from orrery.base.user_text import csv_lines

Floats = NDArray[np.float64]
MAX_BYTES = 200_000_000


def numbers_of(word: str, setting: str, write: str, *, takes_zero: bool = False) -> Floats:
    """Rows of a CSV file, (lines, columns), all above 0; a first line of names is skipped. ``write`` says what to."""
    path = user_path(word.strip())
    if not is_user_file(path):
        raise ScenarioError(f"{setting}: got {word!r}, which is no file; write {write}.")
    return _read(path, setting, write, takes_zero, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _read(path: Path, setting: str, write: str, takes_zero: bool, modified_ns: int) -> Floats:
    """``modified_ns`` only tells an edited file from the one read before."""
    where = f"{setting}: {path.name}"
    text = read_user_text(path, write, MAX_BYTES)
    rows: list[list[float]] = []
    for number, cells in csv_lines(text, where, most_columns=MAX_BYTES):
        if not (row := [cell for cell in cells if cell.strip()]):
            continue
        try:
            rows.append([float(cell) for cell in row])
        except ValueError:
            if rows or number > 1:
                raise ScenarioError(f"{where}: line {number}: got {row[0][:40]!r}; write {write}.") from None
            continue  # names of the columns
        if not all(0.0 < value < math.inf or (takes_zero and value == 0.0) for value in rows[-1]):
            raise ScenarioError(f"{where}: line {number}: has a number that is not above 0; write {write}.")
        if len(rows[-1]) != len(rows[0]):
            raise ScenarioError(
                f"{where}: line {number}: has {len(rows[-1])} numbers, the lines before {len(rows[0])}; write as many."
            )
    if not rows:
        raise ScenarioError(f"{where}: holds no numbers; write {write}.")
    return np.array(rows)
