"""Formats by name, as typed by people and written by tools."""

import pkgutil
from functools import cache, lru_cache
from importlib import import_module

from orrery.base.arguments import wrong_type
from orrery.base.errors import UnknownName
from orrery.numerics import formats
from orrery.numerics.format import Format
from orrery.numerics.weights_alone import weights_alone


@cache
def known_formats() -> dict[str, Format]:
    """Every format in the ``formats`` folder, by name."""
    found = [import_module(f"{formats.__name__}.{m.name}").FORMAT for m in pkgutil.iter_modules(formats.__path__)]
    return {f.name: f for f in sorted(found, key=lambda f: f.name)}


@cache
def _spellings() -> dict[str, Format]:
    return {_plain(word): f for f in known_formats().values() for word in (f.name, *f.aliases)}


@lru_cache(maxsize=1024)
def _plain(name: str) -> str:
    return name.casefold().replace("_", "").replace("-", "").replace(".", "").removeprefix("torch")


def find_format(name: str) -> Format | None:
    """The format called ``name`` in any spelling; None where there is none."""
    return _spellings().get(_plain(name))


def get_format(name: str) -> Format:
    """The format called ``name`` in any spelling, or weights alone spelled out (``int5/128:fp16``); UnknownName carries
    the nearest ones."""
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise wrong_type("get_format", "name", name, "text")
    if found := find_format(name) or weights_alone(name):
        return found
    raise UnknownName("format", name, known_formats())
