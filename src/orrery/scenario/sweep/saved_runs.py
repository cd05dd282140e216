"""Finished runs of a sweep in a folder, one file each, so that an interrupted sweep goes on where it was.

A file is named by a digest of the run's whole scenario, of what is asked and of orrery's version: another question, or
another version, is another file. Files are written whole or not at all.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically


def keep(folder: Path, settings: Mapping[str, Any], finds_capacity: bool, found: Mapping[str, Any]) -> None:
    """Write a finished run."""
    about = _about(settings, finds_capacity)
    write_atomically(_path(folder, about), json.dumps({"about": about, "run": found}, allow_nan=False))


def saved_run(folder: Path, settings: Mapping[str, Any], finds_capacity: bool) -> dict[str, Any] | None:
    """The run if it has been finished before."""
    about = _about(settings, finds_capacity)
    try:
        read: Any = json.loads(_path(folder, about).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    if not isinstance(read, dict):
        return None
    whole = cast("dict[str, Any]", read)
    return whole["run"] if whole.get("about") == about and "run" in whole else None


def folder_for(path: Path) -> Path:
    """The folder, made where there is none."""
    if path.exists() and not path.is_dir():
        raise ScenarioError(f"resume: {path} is a file; give a folder for finished runs.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ScenarioError(f"resume: {path} cannot be made: {error.strerror}; name another folder.") from None
    return path


def _about(settings: Mapping[str, Any], finds_capacity: bool) -> dict[str, Any]:
    inputs = "capacity" if finds_capacity else "run"
    return {
        "version": version("orrery-ai"),
        "inputs": inputs,
        "scenario": {key: settings[key] for key in sorted(settings)},
    }


def _path(folder: Path, about: Mapping[str, Any]) -> Path:
    text = json.dumps(about, sort_keys=True, separators=(",", ":"))
    return folder / f"{sha256(text.encode()).hexdigest()[:32]}.json"
