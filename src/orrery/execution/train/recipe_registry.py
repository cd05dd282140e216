"""Precision recipes by name, as typed by people and written in tables."""

import pkgutil
from functools import cache
from importlib import import_module

from orrery.base.errors import UnknownName
from orrery.execution.train import recipes
from orrery.execution.train.recipe import Recipe


@cache
def known_recipes() -> dict[str, Recipe]:
    """Every recipe in the ``recipes`` folder, by name."""
    found = [import_module(f"{recipes.__name__}.{m.name}").RECIPE for m in pkgutil.iter_modules(recipes.__path__)]
    return {r.name: r for r in sorted(found, key=lambda r: r.name)}


def recipe_names() -> tuple[str, ...]:
    """Every recipe, by name."""
    return tuple(known_recipes())


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
