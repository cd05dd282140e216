"""A technique is one file that ends with ``TECHNIQUE = Technique(...)``.

Putting the file in a ``techniques`` folder is all it takes to register it. Packages outside
orrery offer theirs through the ``orrery.techniques`` entry point, and go the same way.
"""

import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from orrery.base.knobs import NoKnobs

ACTS_ALONE = "acts-alone"
"""Trait of ways to overlap that act on one device too: they hide more than collectives."""

GATHERS_EXPERTS = "gathers-experts"
"""Trait of ways to overlap that bring experts to every rank, at most as many as their first knob: they take room."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Technique:
    """A mechanism at an extension point of a layer: what it does, what it buys and what it costs."""

    name: str  # as typed: "ring-all-reduce"
    extension_point: str  # which rule it replaces: "network.collective"
    rule: Callable[..., Any]
    knobs: type[Any] = NoKnobs  # a frozen dataclass whose every field has a default
    gains: str  # one line: what it buys
    costs: str  # one line: what it costs
    claims: tuple[str, ...]  # sources that describe it, as citable keys: "thakur-2005"
    excludes: frozenset[str] = frozenset()
    word: str = ""  # as a setting writes it, where that is not its name: "lazy" for "checkpoint-lazy"
    traits: frozenset[str] = frozenset()  # what a caller must know of it before it calls the rule
    settings: tuple[tuple[str, int], ...] = ()  # that it cannot do without, where a deployment gives none of its own
    command: str = ""  # the one that takes it, where that of its extension point does not
    measure: str = ""  # what must be measured that no model of time, memory and energy can know

    @property
    def written(self) -> str:
        """The technique as a setting writes it."""
        return self.word or self.name


def discover(folder: ModuleType) -> Iterator[Technique]:
    """Every technique in ``folder``, then every one offered from outside for its floor, by name."""
    inside = [import_module(f"{folder.__name__}.{m.name}") for m in pkgutil.iter_modules(folder.__path__)]
    outside = [e.load() for e in entry_points(group="orrery.techniques")]
    floor = folder.__name__.split(".")[1]
    found = [module.TECHNIQUE for module in (*inside, *outside) if hasattr(module, "TECHNIQUE")]
    yield from sorted((t for t in found if t.extension_point.startswith(f"{floor}.")), key=lambda t: t.name)


def technique_folders() -> Iterator[ModuleType]:
    """Every ``techniques`` folder of the house, by name; found on disk, imported as it is reached."""
    house = Path(__file__).parents[1]
    for folder in sorted(house.rglob("techniques/__init__.py")):
        yield import_module(".".join((house.name, *folder.parent.relative_to(house).parts)))
