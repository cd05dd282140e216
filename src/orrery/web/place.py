"""Where the application keeps what outlives it: one folder, by default in the user's data."""

import os
from dataclasses import dataclass
from pathlib import Path

VARIABLE = "ORRERY_WEB"
"""Environment variable that names the folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The folder, and the reader's library of papers."""

    folder: Path
    library: Path | None = None  # None: where the commands keep it

    @property
    def work_file(self) -> Path:
        """Runs that were asked for, and their results."""
        return self.folder / "runs.sqlite"

    @property
    def uploads(self) -> Path:
        """Model configurations and traces that were uploaded."""
        return self.folder / "uploads"


def place_at(folder: Path | None, library: Path | None = None) -> Place:
    """The folder that is asked for, else that of the environment, else one in the user's data; it is made."""
    found = folder or (Path(named) if (named := os.environ.get(VARIABLE)) else None)
    if found is None:
        from platformdirs import user_data_path

        found = user_data_path("orrery", appauthor=False) / "web"
    (found / "uploads").mkdir(parents=True, exist_ok=True)
    return Place(folder=found.resolve(), library=library)
