"""Errors, each worded so that the reader knows what to write instead.

OrreryError
├── FactError       a fact file that cannot be trusted
├── ScenarioError   user input that makes no sense
│   └── WrongType   an argument of another type than the function takes (also a TypeError)
├── UnknownName     a name that is not in the catalogue (also a LookupError)
│   ├── UnknownTechnique   a technique that does not exist (also a ScenarioError)
│   └── OtherKind   a model that is not of text where one of text is read (also a ScenarioError)
└── OutOfRange      a question outside the range where a rule means anything

Infeasible is not an error: planner and scenario return it as a result with numbers.
"""

import difflib
import re
from collections.abc import Iterable

MAX_LETTERS = 60
"""Largest number of letters of a value that a message repeats."""

MAX_LISTED = 12
"""Names that an error spells out; more are listed by a command."""


class OrreryError(Exception):
    """Any failure that is the input's fault and can be explained in one sentence."""


class FactError(OrreryError, ValueError):
    """A fact file that cannot be trusted. Says which file, which fact, and what to write."""


class ScenarioError(OrreryError, ValueError):
    """User input that makes no sense. Says what, where, what was got, and what to write."""


class WrongType(ScenarioError, TypeError):
    """An argument of another type than the function takes."""


class OutOfRange(OrreryError, ValueError):
    """A question outside the range where a rule means anything."""


class UnknownName(OrreryError, LookupError):
    """A name that is not in the catalogue; carries the nearest known ones."""

    def __init__(self, kind: str, name: str, known: Iterable[str], lister: str = "") -> None:
        known, lister = tuple(known), lister or f"orrery show {kind}s"
        self.kind, self.name, self.near = kind, name, nearest(name, known) or _beginning(name, known)
        hint = f" Did you mean {' or '.join(map(repr, self.near))}?" if self.near else ""
        names = sorted(known)
        rest = f"Known: {', '.join(names)}." if len(names) <= MAX_LISTED else f"`{lister}` lists all."
        super().__init__(f"There is no {kind} {name!r}.{hint} {rest}")


class UnknownTechnique(UnknownName, ScenarioError):
    """A setting that names no technique of its extension point."""


class OtherKind(UnknownName, ScenarioError):
    """A model of pictures, speech or ranking where one of text is read."""

    def __init__(self, name: str) -> None:
        OrreryError.__init__(self, f"model: {name} is no model of text; `orrery estimate` alone answers for it.")
        self.kind, self.name, self.near = "model", name, ()


class NotModelled(UnknownName, ScenarioError):
    """A model with layers that no formula speaks for."""

    def __init__(self, name: str, why: str, instead: str) -> None:
        OrreryError.__init__(self, f"model: {name} is not modelled: {why}. {instead[0].upper()}{instead[1:]}.")
        self.kind, self.name, self.near = "model", name, ()


def shown(value: object) -> str:
    """A value on one short line, for a message; one whose own words fail has none."""
    try:
        text = repr(value)
    except Exception as error:  # a number of too many digits, or whatever somebody's class does
        return f"a value without words ({type(error).__name__})"
    return text if len(text) <= MAX_LETTERS else f"{text[: MAX_LETTERS - 3]}…"


def _beginning(word: str, known: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The shortest known names one of whose words begins with ``word``."""
    begins = re.compile(rf"(?:^|[^a-z0-9]){re.escape(word.casefold())}") if word else None
    found = (name for name in known if begins and begins.search(name.casefold()))
    return tuple(sorted(found, key=lambda name: (len(name), name))[:count])


def nearest(name: str, known: Iterable[str], count: int = 3, cutoff: float = 0.5) -> tuple[str, ...]:
    """The known names that look most like ``name``, best first; ``cutoff`` from 0 (anything) to 1 (the same)."""
    spelled = {k.casefold(): k for k in known}
    close = difflib.get_close_matches(name.casefold(), spelled, n=count, cutoff=cutoff)
    return tuple(spelled[c] for c in close)
