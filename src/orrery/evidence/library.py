"""Where papers lie: a folder for each that comes with orrery, and a user's own files with new papers and marks."""

import os
from pathlib import Path

PACKAGE = "orrery_papers"
"""The package with a folder a paper: its texts come with orrery, its predictions with ``orrery-ai-papers``."""

FOLDER = Path(__file__).parents[2] / PACKAGE
"""Where the papers' texts lie: beside orrery itself."""

TEXT = "paper.toml"
"""Name of the text in a paper's folder."""

VARIABLE = "ORRERY_LIBRARY"
"""Environment variable that names the file."""


def library_file(given: Path | None = None) -> Path:
    """The file that is asked for, else that of the environment, else one in the user's data folder."""
    if given is not None:
        return given
    if named := os.environ.get(VARIABLE):
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path("orrery", appauthor=False) / "library.sqlite"


def own_papers_folder(library: Path | None = None) -> Path:
    """Where paper files go that the reader adds; it need not exist."""
    return library_file(library).parent / "papers"


def paper_texts() -> tuple[Path, ...]:
    """The texts of all papers that come with orrery."""
    return tuple(FOLDER.glob(f"*/{TEXT}"))


def folder_name(key: str) -> str:
    """The folder of a paper's key: a name that Python can import."""
    return key.replace("-", "_")
