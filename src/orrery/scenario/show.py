"""What the catalogue knows, as tables for any window."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from orrery.base.errors import UnknownName
from orrery.numerics.registry import get_format, known_formats
from orrery.scenario.answer import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of one kind of thing; ``title`` says what, ``notes`` what to know about it."""

    kind: str
    title: str
    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """``{"devices": [...]}``, rows as objects."""
        return {self.kind: to_json(self.rows), "notes": list(self.notes)}


def show_all(kind: str) -> Table:
    """Everything of a kind, a row each."""
    return _KINDS[kind][0]()


def show_one(kind: str, name: str) -> Table:
    """One thing, a row for each fact."""
    return _KINDS[kind][1](name)


def _formats() -> Table:
    rows = [
        {
            "name": f.name, "bits_per_element": f.bits_per_element, "kind": f.kind,
            "weight_only": f.weight_only, "title": f.title, "source": f.source,
        }
        for f in known_formats().values()
    ]  # fmt: skip
    return Table(kind="formats", title="Number formats", rows=tuple(rows))


def _format(name: str) -> Table:
    found = get_format(name)
    rows = [{"fact": f.name, "value": getattr(found, f.name)} for f in fields(found)]
    rows.append({"fact": "bits_per_element", "value": found.bits_per_element})
    return Table(kind="formats", title=found.title, rows=tuple(rows))
