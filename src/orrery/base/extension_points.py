"""Techniques by seam and name, and their knobs as the plain array that compiled and vectorised rules take."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError, nearest
from orrery.base.technique import Technique, discover

WORDS_OF_TRUTH: Mapping[str, bool] = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
"""As people write a knob that is on or off."""


def techniques_at(folder: ModuleType, extension_point: str) -> Mapping[str, Technique]:
    """Every technique at a seam, by name, among the files of ``folder`` and what is offered from outside."""
    return _techniques_at(folder.__name__, extension_point)


@cache
def _techniques_at(folder: str, extension_point: str) -> Mapping[str, Technique]:
    return MappingProxyType(
        {t.name: t for t in discover(import_module(folder)) if t.extension_point == extension_point}
    )


def technique_at(folder: ModuleType, extension_point: str, name: str) -> Technique:
    """The technique called ``name`` at ``seam``; ScenarioError with the known names otherwise."""
    known = techniques_at(folder, extension_point)
    if (found := known.get(name)) is None:
        raise ScenarioError(f"There is no {extension_point} technique {name!r}; {_hint(name, known)}")
    return found


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
            raise ScenarioError(f"{technique.name} has no knob {name!r}; {_hint(name, names)}")
    return names


def knob_array(technique: Technique, **given: float) -> NDArray[np.float64]:
    """The knobs of ``technique`` in the order of its dataclass, ``given`` in place of the defaults, checked."""
    names = _known_knobs(technique, given)
    knobs = technique.knobs(**given)
    return np.array([float(getattr(knobs, name)) for name in names], dtype=np.float64)


def _hint(name: str, known: Mapping[str, Any]) -> str:
    """What to write instead: the nearest names, or all of them."""
    if near := nearest(name, known):
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"write one of {', '.join(map(repr, known))}." if known else "it has nothing to set."
