"""Formats by name, as typed by people and written by tools."""

from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from orrery.base.arguments import wrong_type
from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml
from orrery.numerics.format import Format
from orrery.numerics.mixed_widths import mixed_widths
from orrery.numerics.names import get_element
from orrery.numerics.one_bit_pairs import one_bit_pair
from orrery.numerics.scaling import Level, Scaling, read_share
from orrery.numerics.weights_alone import weights_alone

FOLDER = Path(__file__).with_name("formats")


@cache
def known_formats() -> dict[str, Format]:
    """Every format in the ``formats`` folder, by name."""
    return {path.stem: _read(path.stem, read_toml(path)) for path in sorted(FOLDER.glob("*.toml"))}


def _read(name: str, table: dict[str, Any]) -> Format:
    element = get_element(table.pop("element")) if "element" in table else None
    scaling = table.pop("scaling", {})
    levels = tuple(
        Level(share=read_share(level["share"], name), scale=get_element(level["scale"]) if "scale" in level else None)
        for level in scaling.pop("levels", ())
    )
    for key in ("rates", "aliases"):
        table[key] = tuple(table.get(key, ()))
    return Format(name=name, element=element, scaling=Scaling(levels=levels, **scaling), **table)


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
    if found := find_format(name) or weights_alone(name) or one_bit_pair(name) or mixed_widths(name):
        return found
    raise UnknownName("format", name, known_formats())
