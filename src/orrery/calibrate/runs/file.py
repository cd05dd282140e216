"""The file of a correction, as ``catalog.corrected`` reads it: written whole, never over another without being told."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from orrery.base.errors import ScenarioError
from orrery.base.files import write_atomically
from orrery.base.user_file import user_path
from orrery.calibrate.runs.answer import OPEN, ConstantUpdate
from orrery.calibrate.runs.problem import Subject

SUFFIX = ".toml"


def path_of(name: str, *, replace: bool) -> Path:
    """Where a correction called ``name`` is written; refused where something is there, or no folder to hold it."""
    if not name.strip() or not Path(name).name.removesuffix(SUFFIX):
        raise ScenarioError("name: is blank; write a name, such as --name my-box.")
    path = user_path(name if name.endswith(SUFFIX) else name + SUFFIX)
    if path.is_dir() or not path.parent.is_dir():
        raise ScenarioError(
            f"{path}: cannot be written: {'it' if path.is_dir() else path.parent} is "
            f"{'a folder' if path.is_dir() else 'no folder'}."
        )
    if path.exists() and not replace:
        raise ScenarioError(f"{path}: is there already; write --replace to overwrite it, or take another name.")
    return path


def write(
    path: Path,
    subject: Subject,
    updates: Sequence[ConstantUpdate],
    spreads: Mapping[str, Mapping[str, float]],
    num_runs: int,
    day: str,
    notes: Sequence[str],
) -> None:
    """Write what moved, and the conditions."""
    moved = [t for t in updates if t.left <= OPEN]
    at = f"{num_runs} runs of {', '.join(subject.models)} on {subject.device}, {day}"
    content: dict[str, Any] = {
        "kind": subject.kind,
        "base": subject.base,
        "version": subject.version,
        "precision": subject.precision,
        "device": subject.device,
        "at": at,
        "sources": {"runs": {"title": f"Own runs: {', '.join(subject.tools) or 'a table'}", "retrieved": day}},
        "constants": {t.name: float(f"{t.after:.4g}") for t in moved},
        "spread": {key: dict(value) for key, value in spreads.items()},
        "conditions": {
            "basis": "measured",
            "runs": num_runs,
            "models": list(subject.models),
            "tools": list(subject.tools),
            "date": day,
            "stays_as_shipped": [t.name for t in updates if t.left > OPEN],
            "sd_log": {t.name: float(f"{t.sd_log:.3g}") for t in moved},
            "notes": list(notes),
        },
    }
    text = f"# made by: orrery calibrate runs\n{tomli_w.dumps({k: v for k, v in content.items() if v != ''})}"
    try:
        write_atomically(path, text)
    except OSError as error:
        raise ScenarioError(f"{path}: cannot be written: {error.strerror}.") from None
