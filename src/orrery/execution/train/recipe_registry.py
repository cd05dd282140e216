"""Precision recipes by name, as typed by people and written in tables."""

from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml
from orrery.execution.train.recipe import Recipe

FOLDER = Path(__file__).with_name("recipes")


@cache
def known_recipes() -> dict[str, Recipe]:
    """Every recipe in the ``recipes`` folder, by name."""
    found = (Recipe(**_read(path)) for path in FOLDER.glob("*.toml"))
    return {r.name: r for r in sorted(found, key=lambda r: r.name)}


def _read(path: Path) -> dict[str, Any]:
    """The fields of a recipe; those that its file leaves out are those of its ``base``, another file."""
    table = read_toml(path)
    base = table.pop("base", "")
    for key in ("aliases", "sources"):
        if key in table:
            table[key] = tuple(table[key])
    return (_read(FOLDER / f"{base}.toml") if base else {}) | table


@cache
def _spellings() -> dict[str, Recipe]:
    return {_plain(word): r for r in known_recipes().values() for word in (r.name, *r.aliases)}


def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "").replace(" ", "")


def get_recipe(name: str) -> Recipe:
    """The recipe called ``name`` in any spelling; UnknownName carries the nearest ones."""
    if found := _spellings().get(_plain(name)):
        return found
    raise UnknownName("recipe", name, known_recipes())
