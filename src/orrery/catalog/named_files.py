"""Fact files found by their name, or by an alias that they list; and which names are files of the user's own."""

from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml


def is_own_file(name: str) -> bool:
    """Whether a name means a file of the user's."""
    return name.endswith(".toml")


@cache
def file_names(folder: Path) -> tuple[str, ...]:
    """Every fact file of a folder, by name."""
    return tuple(sorted(path.stem for path in folder.glob("*.toml")))


@cache
def read_file(folder: Path, name: str) -> dict[str, Any]:
    """The tables of one of them."""
    return read_toml(folder / f"{name}.toml")


def file_called(folder: Path, kind: str, word: str) -> str:
    """The file that a user's word means; UnknownName with the nearest names where there is none."""
    found = _aliases(folder).get(word.casefold().replace("_", "-").replace(" ", "-"))
    if found is None:
        raise UnknownName(kind, word, file_names(folder))
    return found


@cache
def _aliases(folder: Path) -> dict[str, str]:
    return {word: name for name in file_names(folder) for word in (name, *read_file(folder, name).get("aliases", ()))}
