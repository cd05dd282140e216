"""Where a reader's own library lies: one file of new papers and marks, and a folder of own paper files beside it."""

import os
from pathlib import Path

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
