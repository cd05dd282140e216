"""Element formats by name: the files of ``elements``, then whatever a family can spell out."""

import pkgutil
from functools import cache
from importlib import import_module

from orrery.base.errors import UnknownName
from orrery.numerics import elements
from orrery.numerics.element import Element
from orrery.numerics.families import bipolar, fixed, minifloat, posit, power

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
def named_elements() -> dict[str, Element]:
    """Every element in the ``elements`` folder, by name."""
    found = [import_module(f"{elements.__name__}.{m.name}").ELEMENT for m in pkgutil.iter_modules(elements.__path__)]
    return {e.name: e for e in sorted(found, key=lambda e: e.name)}


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
