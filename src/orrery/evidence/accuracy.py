"""The checked-in accuracy file: errors on measured tables above a mark, papers' claims below it.

Each part is written by its own command and leaves the other as it stands.
"""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from orrery.base.files import write_atomically

ACCURACY = Path(__file__).parent / "accuracy.toml"

TABLES = "# made by: make scorecard. Absolute errors on test rows, as fractions; bias is the median with its sign."
PAPERS = "# made by: orrery reproduce --all. Each claim's prediction, in the claim's own unit."


def read_tables(path: Path = ACCURACY) -> dict[str, Any]:
    """Errors by measured table."""
    return tomllib.loads(_parts(path)[0])


def read_papers(path: Path = ACCURACY) -> tuple[dict[str, Any], dict[str, Any]]:
    """Papers' claims by paper, and curves by paper."""
    found = tomllib.loads(_parts(path)[1])
    return found.get("papers", {}), found.get("curves", {})


def write_tables(entries: Mapping[str, Any], path: Path = ACCURACY) -> None:
    """Put the errors of measured tables into the file."""
    _write(path, f"{TABLES}\n{tomli_w.dumps(entries)}", _parts(path)[1])


def write_papers(text: str, path: Path = ACCURACY) -> None:
    """Put papers' claims and curves, as TOML under ``papers`` and ``curves``, into the file."""
    _write(path, _parts(path)[0], text)


def _parts(path: Path) -> tuple[str, str]:
    tables, _, papers = path.read_text(encoding="utf-8").partition(PAPERS)
    return tables, papers


def _write(path: Path, tables: str, papers: str) -> None:
    write_atomically(path, f"{tables.rstrip()}\n\n{PAPERS}\n{papers.lstrip()}")
