"""One file that a user hands in: its text, and what it holds where it is JSON."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from orrery.base.errors import ScenarioError
from orrery.base.user_file import read_user_text
from orrery.base.user_text import json_value

Object = Mapping[str, Any]

WRITE = "give a result file as its tool wrote it"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Log:
    """A file and its text; ``objects`` are its JSON objects (one, a list of them, or one a line), else empty."""

    path: Path
    text: str
    objects: tuple[Object, ...]
    broken: str  # why a text that begins like JSON is none

    @property
    def name(self) -> str:
        """The file's name, as messages say it."""
        return self.path.name

    @property
    def one(self) -> Object:
        """The object of a file that holds exactly one; else an empty one."""
        return self.objects[0] if len(self.objects) == 1 else {}


def read_log(path: Path) -> Log:
    """A text file, also compressed with gzip; an empty or unreadable one is refused."""
    text = read_user_text(path, f"result file, such as {path.name}/*.json")
    if not text.strip():
        raise ScenarioError(f"{path.name}: is empty.")
    objects, broken = _objects(text, path.name) if text.lstrip()[0] in "{[" else ((), "")
    return Log(path=path, text=text, objects=objects, broken=broken)


def _objects(text: str, name: str) -> tuple[tuple[Object, ...], str]:
    """The objects of JSON or of JSON lines, and what is wrong where it is neither."""
    try:
        whole = json_value(text, name, WRITE)
    except ScenarioError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        try:
            found = [json_value(line, name, WRITE) for line in lines]
        except ScenarioError:
            return (), str(error)
    else:
        found = cast(list[Any], whole) if isinstance(whole, list) else [whole]
    return tuple(cast(Object, x) for x in found if isinstance(x, dict)), ""


def inner(data: Object, *path: str) -> Object:
    """The object inside objects at ``path``; an empty one where there is none."""
    for key in path:
        found = data.get(key)
        if not isinstance(found, dict):
            return {}
        data = cast(Object, found)
    return data


def number(data: Object, *keys: str) -> float:
    """The first of these keys that holds a finite number (text that spells one counts); NaN where none does."""
    for key in keys:
        value = data.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            continue
        if math.isfinite(found := spelled(value)):
            return found
    return math.nan


def numbers(data: Object, key: str) -> list[float]:
    """The finite numbers of the list under a key; none where there is no list."""
    values = data.get(key)
    each = cast("list[Any]", values) if isinstance(values, list) else []
    return [found for value in each if math.isfinite(found := number({key: value}, key))]


def spelled(value: int | float | str) -> float:
    """The number that a value is or spells, as wide as a float is; NaN where it is none."""
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def word(data: Object, *keys: str) -> str:
    """The first of these keys that holds text."""
    return next((v for k in keys if isinstance(v := data.get(k), str) and v), "")


def search(data: Any, names: tuple[str, ...]) -> Iterator[Any]:
    """Every value that stands under one of these names, however deep, outer ones first."""
    if isinstance(data, dict):
        found = cast(dict[str, Any], data)
        yield from (v for k, v in found.items() if k in names and v is not None)
        for value in found.values():
            yield from search(value, names)
    elif isinstance(data, list):
        for value in cast(list[Any], data):
            yield from search(value, names)
