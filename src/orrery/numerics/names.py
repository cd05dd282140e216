"""Element formats by name: the TOML files of ``elements``, then whatever a family can spell out."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml
from orrery.numerics.element import Element
from orrery.numerics.families import bipolar, fixed, minifloat, posit, power
from orrery.numerics.families.lookup import Lookup
from orrery.numerics.families.minifloat import Minifloat

FOLDER = Path(__file__).with_name("elements")

FAMILIES: Mapping[str, Callable[..., Element]] = MappingProxyType({"minifloat": Minifloat, "lookup": Lookup})
"""Families that have elements in files; the others spell theirs out."""

SPELLINGS = (minifloat.read, fixed.read, bipolar.read, posit.read, power.read)

EXAMPLES = (
    "e3m4",
    "e4m2fnuz",
    "ue4m4",
    "int5",
    "int4sym",
    "uint4",
    "fixed8_6",
    "bipolar3",
    "posit8_1",
    "pot4",
    "power4_0.5",
)
"""One of each family, for people."""


@cache
def _tables() -> dict[str, dict[str, Any]]:
    return {path.stem: read_toml(path) for path in sorted(FOLDER.glob("*.toml"))}


@cache
def named_elements() -> dict[str, Element]:
    """Every element in the ``elements`` folder, by name."""
    return {name: _read(name, table) for name, table in _tables().items()}


def source_of_named(name: str) -> str:
    """Description and source of an element in the ``elements`` folder, in a sentence."""
    return _tables()[name]["source"]


def _read(name: str, table: dict[str, Any]) -> Element:
    settings = {key: value for key, value in table.items() if key not in ("family", "source")}
    if "table" in settings:
        settings["table"] = tuple(settings["table"])
    return FAMILIES[table["family"]](name=name, **settings)


@cache
def get_element(name: str) -> Element:
    """The element called ``name``; UnknownName carries the nearest ones."""
    plain = name.casefold().strip()
    if found := named_elements().get(plain):
        return found
    for read in SPELLINGS:
        if found := read(plain):
            return found
    raise UnknownName("element", name, (*named_elements(), *EXAMPLES))
