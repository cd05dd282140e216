"""The folder of uploads: each file under a name of ours, beside it what was found in it; nothing is deleted unasked."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.web.named import NAME, uploaded
from orrery.web.uploads.refused import bare, ending_of

MAX_FILES = 50
MAX_BYTES = 20_000_000
MAX_LETTERS = 40
"""Maximum letters of a name, before the mark of the content."""

_OTHER = re.compile(r"[^A-Za-z0-9_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredFile:
    """One uploaded file."""

    name: str
    original: str
    kind: str
    about: tuple[str, ...]
    opens: str
    size_bytes: int
    at: str


def name_for(original: str, content: bytes, called: str = "") -> str:
    """A harmless name that tells files apart by their content: ``my-model-1f2e3d4c.json``."""
    stem = called or bare(original).rsplit(".", 1)[0]
    clean = _OTHER.sub("-", stem).strip("-_")[:MAX_LETTERS].rstrip("-_") or "file"
    return f"{clean}-{sha256(content).hexdigest()[:8]}{ending_of(original)}"


def listed(folder: Path) -> list[StoredFile]:
    """Every file, the newest first."""
    return sorted(_listed(folder), key=lambda stored: (stored.at, stored.name), reverse=True)


def _listed(folder: Path) -> Iterator[StoredFile]:
    for path in folder.iterdir():
        if NAME.fullmatch(path.name) and path.is_file() and not path.is_symlink():
            try:
                description: dict[str, Any] = json.loads(_about(path).read_text(encoding="utf-8"))
                description |= {"about": tuple(description["about"]), "name": path.name}
                yield StoredFile(**description)
            except (OSError, ValueError, TypeError, KeyError):  # put there by hand, or deleted meanwhile
                continue


def refuse_full(folder: Path, more_bytes: int) -> None:
    """ScenarioError where so much more has no room."""
    sizes = [stored.size_bytes for stored in listed(folder)]
    if len(sizes) >= MAX_FILES or sum(sizes) + more_bytes > MAX_BYTES:
        raise ScenarioError(
            f"There is room for {MAX_FILES} files and {MAX_BYTES / 1e6:g} MB; {len(sizes)} files with "
            f"{sum(sizes) / 1e6:.3g} MB are kept. Delete some first."
        )


def keep(file: Path, folder: Path, original: str, found: dict[str, Any]) -> StoredFile:
    """Move a checked file to its place."""
    size = file.stat().st_size
    refuse_full(folder, size)
    at = datetime.now(UTC).isoformat(timespec="seconds")
    stored = StoredFile(
        name=file.name,
        original=bare(original)[:120],
        kind=found["kind"],
        about=tuple(found["about"]),
        opens=found["opens"],
        size_bytes=size,
        at=at,
    )
    place = folder / file.name
    write_atomically(_about(place), json.dumps(asdict(stored)))
    file.replace(place)
    return stored


def delete(name: str, folder: Path) -> None:
    """Take a file away; ScenarioError where there is none of that name."""
    path = uploaded(name, folder)
    path.unlink(missing_ok=True)
    _about(path).unlink(missing_ok=True)


def _about(path: Path) -> Path:
    """Findings on a file; its name is none that an address could ask for."""
    return path.with_name(f".{path.name}.about")
