"""One setting of a scenario; the module imports nothing heavy, so that help stays quick."""

from dataclasses import dataclass, replace
from typing import Any, Literal, cast

Kind = Literal["word", "count", "number", "words", "switch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One key of a scenario; its flag is the key with dashes. ``least`` and ``most`` bound numbers.

    ``group`` is the heading that forms fold it away under.
    """

    name: str
    kind: Kind
    help: str
    example: str
    metavar: str = ""
    least: float = 1
    most: float = 1_000_000
    excludes_least: bool = False
    commands: frozenset[str] = frozenset({"estimate", "why", "plan", "simulate", "emulate"})
    group: str = ""

    @property
    def flag(self) -> str:
        """As typed: ``--input-tokens``."""
        return "--" + self.name.replace("_", "-")

    @property
    def is_numeric(self) -> bool:
        """Whether bounds apply to it."""
        return self.kind in ("count", "number")

    def holds(self, value: float) -> bool:
        """Whether a number is within the bounds."""
        above = value > self.least if self.excludes_least else value >= self.least
        return above and value <= self.most

    def typed(self, value: Any) -> list[str]:
        """The words that set it on a command line; none for None."""
        if value is None:
            return []
        if isinstance(value, bool):
            return [self.flag if value else f"--no-{self.flag.removeprefix('--')}"]
        if isinstance(value, list | tuple):
            return [word for one in cast("list[Any]", value) for word in (self.flag, str(one))]
        return [self.flag, f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)]

    @property
    def expects(self) -> str:
        """Description of the values that may be written."""
        if self.kind == "count":
            return f"a whole number from {self.least:,.0f} to {self.most:,.0f}"
        if self.kind == "number":
            low = f"above {self.least:g}" if self.excludes_least else f"from {self.least:g}"
            return f"a number {low} to {self.most:,.6g}"
        return {"word": "text", "switch": "true or false"}.get(self.kind, "a list of texts")


ONE = frozenset({"estimate", "why"})
PLAN = frozenset({"plan"})
PAID = PLAN | {"fleet"}
SIMULATE = frozenset({"simulate"})
STEPS = SIMULATE | {"emulate"}
TRAFFIC = ONE | PLAN | SIMULATE
SERVING = ONE | PLAN | STEPS
TRAIN = frozenset({"train"})
DEPLOYMENTS = TRAFFIC | TRAIN
EVERY = SERVING | TRAIN
START = frozenset({"cold-start"})
CACHE = frozenset({"cache-size"})
MACHINES = EVERY | START | CACHE
"""Commands, by what they are about: ``STEPS`` serve a deployment step by step, ``TRAFFIC`` knows what is to come,
``DEPLOYMENTS`` answer for a scenario, ``START`` brings a replica up, ``CACHE`` sizes its cache,
``MACHINES`` have a model on devices, ``PAID`` compare what serving costs."""


def count(
    name: str,
    help: str,
    example: int,
    *,
    most: float = 1_000_000,
    least: float = 1,
    commands: frozenset[str] = SERVING,
) -> Setting:
    """A whole number."""
    return Setting(
        name=name, kind="count", help=help, example=str(example), metavar="N", least=least, most=most, commands=commands
    )


def number(
    name: str,
    help: str,
    example: float,
    *,
    most: float,
    least: float = 0.0,
    excludes_least: bool = True,
    metavar: str = "X",
    commands: frozenset[str] = SERVING,
) -> Setting:
    """A number with a unit."""
    return Setting(
        name=name,
        kind="number",
        help=help,
        example=f"{example:g}".replace("e+", "e"),
        metavar=metavar,
        least=least,
        most=most,
        excludes_least=excludes_least,
        commands=commands,
    )


def switch(name: str, help: str, *, commands: frozenset[str] = STEPS) -> Setting:
    """True or false."""
    return Setting(name=name, kind="switch", help=help, example="true", commands=commands)


def word(name: str, help: str, example: str, metavar: str, *, commands: frozenset[str] = SERVING) -> Setting:
    """A name, a path, or a few words with commas."""
    return Setting(name=name, kind="word", help=help, example=f'"{example}"', metavar=metavar, commands=commands)


def grouped(*listed: Setting | str) -> tuple[Setting, ...]:
    """Settings, each with the heading that stands before it; one that has a heading keeps it."""
    heading, found = "", list[Setting]()
    for one in listed:
        if isinstance(one, str):
            heading = one
        else:
            found.append(one if one.group else replace(one, group=heading))
    return tuple(found)
