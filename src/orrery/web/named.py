"""Names in addresses: what the catalogue knows, or what was uploaded; never a path of this machine.

The same settings on the command line may be paths. Whoever can make a browser ask must not read files by it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from orrery.base.errors import ScenarioError
from orrery.catalog.agent_sessions import session_names
from orrery.catalog.devices import get_device
from orrery.catalog.models import resolve
from orrery.catalog.named_files import is_own_file
from orrery.catalog.traces import trace_names
from orrery.scenario.fields import SETTINGS
from orrery.scenario.fields_fleet import FLEET_SETTINGS

UPLOADED = "upload:"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}(\.[A-Za-z0-9]{1,8}){0,2}")
"""Pattern of an uploaded file's name."""

LAW = re.compile(r"[a-z][a-z-]*(:[0-9.e+-]+)*(\+[a-z]+:[0-9.e+-]+)*|[0-9.,/e+ -]+")
"""A law with its numbers (``zipf:0.5+affinity:0.3``), or numbers alone, where a setting takes these or a file."""

METAVARS = {s.name: s.metavar for s in (*FLEET_SETTINGS, *SETTINGS)}
FILES = frozenset(name for name, metavar in METAVARS.items() if "PATH" in metavar or "FILE" in metavar)


def grounded(settings: Mapping[str, Any], uploads: Path) -> dict[str, Any]:
    """The settings, with uploaded files by their place; ScenarioError where a value is a path."""
    return {name: _grounded(name, value, uploads) for name, value in settings.items()}


def _grounded(name: str, value: Any, uploads: Path) -> Any:
    if isinstance(value, str) and value.startswith(UPLOADED) and name in FILES:
        return str(uploaded(value.removeprefix(UPLOADED), uploads))
    if isinstance(value, str) and (name in FILES or is_own_file(value)):
        _check(name, value)
    return value


def uploaded(name: str, uploads: Path) -> Path:
    """The file of that name among the uploaded ones."""
    path = uploads / name
    if not NAME.fullmatch(name) or not path.is_file():
        raise ScenarioError(f"{UPLOADED}{name[:80]}: nothing was uploaded under that name; upload it again.")
    return path


def paths_of(names: Sequence[str], uploads: Path) -> list[str]:
    """The places of uploaded files that are named one by one; ScenarioError where one is no such name."""
    for name in names:
        if not name.startswith(UPLOADED):
            raise ScenarioError(f"{name[:80]!r} is no uploaded file; upload it, and write {UPLOADED}NAME.")
    return [str(uploaded(name.removeprefix(UPLOADED), uploads)) for name in names]


def without_place(words: str, uploads: Path) -> str:
    """A message about an uploaded file that names the file as an address does, not where it lies on this machine."""
    return words.replace(f"{uploads}/", UPLOADED)


def bare(words: str, uploads: Path) -> str:
    """The same in a file that is handed on: there an uploaded file stands by its own name."""
    return words.replace(f"{uploads}/", "")


def _check(name: str, value: str) -> None:
    """Refuse what is no name. Devices may stand as a list with commas."""
    known = KNOWN.get(name.rpartition("_")[2])
    for one in map(str.strip, value.split(",") if name == "device" else (value,)):
        if one.endswith((".json", ".toml")) or one.startswith((".", "/", "~", "\\")) or "\0" in one:
            raise ScenarioError(f"{name}: {one[:80]!r} is a path; give a name here, or upload the file.")
        if known is not None:
            known(one)
    if name in FILES and known is None and (not LAW.fullmatch(value) or Path(value).exists()):
        raise ScenarioError(
            f"{name}: {value[:80]!r} is neither a law nor numbers ({METAVARS[name]}); "
            f"a file is uploaded, and written as {UPLOADED}NAME."
        )


def _trace(name: str) -> None:
    if name not in trace_names():
        raise ScenarioError(f"trace: got {name[:80]!r}; known: {', '.join(trace_names())}; or upload a file.")


def _sessions(name: str) -> None:
    if name not in session_names():
        raise ScenarioError(f"sessions: got {name[:80]!r}; known: {', '.join(session_names())}; or upload a file.")


KNOWN: dict[str, Callable[[str], object]] = {
    "model": resolve,
    "device": get_device,
    "trace": _trace,
    "sessions": _sessions,
}
"""Errors of unknown names; none of these lookups opens a file that a name could point at."""
