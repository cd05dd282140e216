"""Extension points with their techniques, and knobs as the plain array that compiled and vectorised rules take."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError, UnknownTechnique, nearest
from orrery.base.technique import Technique, discover

WORDS_OF_TRUTH: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""As people write a knob that is on or off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionPoint:
    """A rule of a layer that has several techniques: the files of a folder, and what other packages offer."""

    name: str  # "serving.queue"
    folder: ModuleType  # whose files are its techniques
    noun: str  # one of them, in messages

    @property
    def techniques(self) -> Mapping[str, Technique]:
        """Every technique, by name."""
        return _techniques_at(self.folder.__name__, self.name)

    @property
    def words(self) -> tuple[str, ...]:
        """Every technique as a setting writes it."""
        return tuple(t.written for t in self.techniques.values())

    def get(self, name: str) -> Technique:
        """The technique of that name, or that a setting writes so; UnknownTechnique carries the nearest ones."""
        if (found := self.techniques.get(name)) is not None:
            return found
        for technique in self.techniques.values():
            if technique.word == name:
                return technique
        raise UnknownTechnique(self.noun, name, self.words, "orrery show techniques")


@cache
def _techniques_at(folder: str, extension_point: str) -> Mapping[str, Technique]:
    return MappingProxyType(
        {t.name: t for t in discover(import_module(folder)) if t.extension_point == extension_point}
    )


def knobs_from(technique: Technique, written: Mapping[str, str]) -> Any:
    """The knobs of ``technique`` with what somebody wrote in place of the defaults, each read as what it is."""
    names = _known_knobs(technique, written)
    return technique.knobs(**{name: _read(technique, name, names[name], text) for name, text in written.items()})


def _read(technique: Technique, name: str, kind: Any, text: str) -> Any:
    """A whole number, a number, true or false, or a word."""
    if kind is bool:
        if text.casefold() not in WORDS_OF_TRUTH:
            raise ScenarioError(f"{technique.name}: knob {name} = {text!r}; write true or false.")
        return WORDS_OF_TRUTH[text.casefold()]
    if kind is not int and kind is not float:
        return text
    try:
        value = kind(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        what = "a whole number" if kind is int else "a number"
        raise ScenarioError(f"{technique.name}: knob {name} = {text!r}; write {what}.")
    return value


def _known_knobs(technique: Technique, given: Iterable[str]) -> Mapping[str, Any]:
    """The knobs of ``technique`` and what each of them is; refuses other names."""
    names = {f.name: f.type for f in fields(technique.knobs)}
    for name in given:
        if name not in names:
            raise ScenarioError(f"{technique.name} has no knob {name!r}; {knob_hint(name, names)}")
    return names


def knobs_with(technique: Technique, given: Mapping[str, Any]) -> Any:
    """The knobs of ``technique`` with ``given`` in place of the defaults; ScenarioError where it has no such knob."""
    _known_knobs(technique, given)
    return technique.knobs(**given)


def knob_array(technique: Technique, **given: float) -> NDArray[np.float64]:
    """The knobs of ``technique`` in the order of its dataclass, ``given`` in place of the defaults, checked."""
    knobs = knobs_with(technique, given)
    return np.array([float(getattr(knobs, f.name)) for f in fields(knobs)], dtype=np.float64)


def knob_hint(name: str, known: Collection[str]) -> str:
    """Suggestion for an unknown name: the nearest names, or all of them."""
    if near := nearest(name, known):
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"write one of {', '.join(map(repr, known))}." if known else "it has nothing to set."
