"""The part of the accuracy file that holds the errors on measured tables, written anew."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from orrery.evidence.accuracy import ACCURACY, parts_of, write_parts

TABLES = "# made by: make scorecard. Absolute errors on test rows, as fractions; bias is the median with its sign."


def write_tables(entries: Mapping[str, Any], path: Path = ACCURACY) -> None:
    """Put the errors of measured tables into the file; papers' claims stay as they stand."""
    write_parts(path, f"{TABLES}\n{tomli_w.dumps(entries)}", parts_of(path)[1])
