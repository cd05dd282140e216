"""The checked-in accuracy file: errors on measured tables above a mark, papers' claims below it.

Each part is written by its own command and leaves the other as it stands.
"""

from pathlib import Path
from typing import Any

import tomli

from orrery.base.files import write_atomically

ACCURACY = Path(__file__).parent / "accuracy.toml"

PAPERS = "# made by: orrery reproduce --all. Each claim's prediction, in the claim's own unit."


def read_tables(path: Path = ACCURACY) -> dict[str, Any]:
    """Errors by measured table."""
    return tomli.loads(parts_of(path)[0])


def read_papers(path: Path = ACCURACY) -> tuple[dict[str, Any], dict[str, Any]]:
    """Papers' claims by paper, and curves by paper."""
    found = tomli.loads(parts_of(path)[1])
    return found.get("papers", {}), found.get("curves", {})


def write_papers(text: str, path: Path = ACCURACY) -> None:
    """Put papers' claims and curves, as TOML under ``papers`` and ``curves``, into the file."""
    write_parts(path, parts_of(path)[0], text)


def parts_of(path: Path = ACCURACY) -> tuple[str, str]:
    """The text above the mark and the text below it."""
    tables, _, papers = path.read_text(encoding="utf-8").partition(PAPERS)
    return tables, papers


def write_parts(path: Path, tables: str, papers: str) -> None:
    """Put both texts into the file, whole or not at all."""
    write_atomically(path, f"{tables.rstrip()}\n\n{PAPERS}\n{papers.lstrip()}")
