"""The techniques of this floor by seam and name, and their knobs as the plain array that compiled rules take."""

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from orrery.base.errors import ScenarioError, nearest
from orrery.base.technique import Technique, discover
from orrery.execution import techniques


@cache
def techniques_at(seam: str) -> Mapping[str, Technique]:
    """Every technique at a seam of this floor, by name."""
    return MappingProxyType({t.name: t for t in discover(techniques) if t.seam == seam})


def technique_at(seam: str, name: str) -> Technique:
    """The technique called ``name`` at ``seam``; ScenarioError with the known names otherwise."""
    known = techniques_at(seam)
    if (found := known.get(name)) is None:
        raise ScenarioError(f"There is no {seam} technique {name!r}; {_hint(name, known)}")
    return found


def knob_array(technique: Technique, **given: float) -> NDArray[np.float64]:
    """The knobs of ``technique`` in the order of its dataclass, ``given`` in place of the defaults, checked."""
    names = [f.name for f in fields(technique.knobs)]
    for name in given:
        if name not in names:
            raise ScenarioError(f"{technique.name} has no knob {name!r}; {_hint(name, names)}")
    knobs = technique.knobs(**given)
    return np.array([float(getattr(knobs, name)) for name in names], dtype=np.float64)


def _hint(name: str, known: Mapping[str, Technique] | list[str]) -> str:
    """What to write instead: the nearest names, or all of them."""
    if near := nearest(name, known):
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"write one of {', '.join(map(repr, known))}." if known else "it has nothing to set."
