"""One such page: its form, the question that it asks a worker, and its answer as sections of tables."""

import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orrery.scenario.setting import Setting
from orrery.web.address import Query
from orrery.web.export import Cell
from orrery.web.forms import SUGGESTED, Field, label_of
from orrery.web.parameters import Parameters

Plain = Mapping[str, Any]

MAX_NUMBER_LETTERS = 32
"""The longest cell of a column of numbers, an interval with units; what is longer is a sentence."""

_NUMBER = re.compile(r"[+-]?\$?\d|(-|none|not known|the same)?$")
"""Pattern of a cell in a column of numbers: a number at its beginning, or a word in place of one."""

MAX_SIDE_COLUMNS = 6
"""Columns of a table that still stands beside a chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows as text, the first cell of each a heading; ``marked`` are the rows that stand out."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    marked: frozenset[int] = frozenset()

    @property
    def texts(self) -> frozenset[int]:
        """Columns that hold words or sentences, which wrap and stand on the left."""
        return frozenset(
            n for n, column in enumerate(zip(*self.rows, strict=True)) if n and not all(map(_fits, column))
        )


def _fits(cell: str) -> bool:
    """Whether a cell is a number, or stands for one that is missing."""
    return len(cell) <= MAX_NUMBER_LETTERS and _NUMBER.match(cell) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A part of an answer: its result first, then the reasons."""

    title: str
    verdict: str = ""
    table: Table | None = None
    reasons: tuple[str, ...] = ()
    link: tuple[str, str] = ("", "")  # an address, and its words
    form: tuple[str, str, tuple[tuple[str, str], ...]] = ("", "", ())  # of a button: address, words, fields
    svg: str = ""
    command: str = ""  # that applies it

    @property
    def is_side(self) -> bool:
        """Whether the table is narrow enough to stand beside the chart."""
        return self.table is not None and len(self.table.columns) <= MAX_SIDE_COLUMNS


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPage:
    """A page of this kind; ``name`` is that of its path and of the worker's question."""

    name: str
    title: str
    lead: str
    menu: tuple[int, str]  # place and name in the menu
    page: str  # of the docs
    first: Callable[[Plain], tuple[Field, ...]]
    folded: Callable[[Plain], tuple[Field, ...]]
    settings: Callable[[Query], dict[str, Any]]
    names: frozenset[str]  # of parameters that ``settings`` reads
    start: Plain  # what the form opens with
    command: Callable[[Plain], str]
    sections: Callable[[Plain], tuple[Section, ...]]
    rows: Callable[[Plain], tuple[Sequence[str], list[Sequence[Cell]]]]  # header and cells of the CSV
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])  # fields that are lists
    own: frozenset[str] = frozenset()  # settings that share a name with a scenario's and are no file here
    suggested: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    uploaded: frozenset[str] = frozenset()  # settings that are lists of uploaded files

    @property
    def parameters(self) -> Parameters:
        """Parameters of the address: settings, and the form of the answer."""
        return Parameters(words={"file": ("json", "csv"), "whole": ("1",)}, settings=self.names)

    def read(self, query: Query) -> dict[str, Any]:
        """The settings of an address, where a dash is as good as an underscore."""
        return self.settings(Query([(name.replace("-", "_"), value) for name, value in query.multi_items()]))


def fields_from(settings: Sequence[Setting], values: Plain, labels: Mapping[str, str]) -> tuple[Field, ...]:
    """Inputs for settings, labelled by ``labels``, then as everywhere, then by their own names."""
    return tuple(
        Field(
            name=s.name,
            label=labels.get(s.name) or label_of(s.name),
            value=_text(values.get(s.name)),
            help=s.help,
            example=s.example.strip('[]"').replace('", "', ", "),
            suggested=SUGGESTED.get(s.name, ""),
            is_number=s.kind in ("count", "number"),
        )
        for s in settings
    )


def form_of(
    settings: Mapping[str, Setting], first: Collection[str], labels: Mapping[str, str]
) -> tuple[Callable[[Plain], tuple[Field, ...]], Callable[[Plain], tuple[Field, ...]]]:
    """The inputs of a page that are named in ``first``, in its order, and the others, which are folded away."""
    shown = [settings[name] for name in first]
    others = [setting for name, setting in settings.items() if name not in first]
    return (lambda values: fields_from(shown, values, labels)), (lambda values: fields_from(others, values, labels))


def command_line(words: str) -> Callable[[Plain], str]:
    """The line of a command for given settings, where each of them is a flag."""
    return lambda inputs: f"orrery {words} {flags(inputs)}"


def flags(settings: Plain) -> str:
    """Settings as flags of the command line, quoted where a shell needs it."""
    found: list[str] = []
    for name, value in settings.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True or value == "true":
            found.append(flag)
        else:
            found += [f"{flag} {shlex.quote(_text(one))}" for one in (value if isinstance(value, list) else [value])]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return " ".join(found)


def _text(value: Any) -> str:
    if value is None:
        return ""
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)  # pyright: ignore[reportUnknownArgumentType]
