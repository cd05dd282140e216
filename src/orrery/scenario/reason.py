"""One number and why it is what it is: a tree of rules and parts whose leaves are facts with sources."""

from dataclasses import dataclass
from typing import Any

from orrery.base.sources import Fact
from orrery.scenario.answer import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One number: its rule as text, the numbers it is made of, and the facts that entered here."""

    name: str  # the last word is the unit
    value: float | str | None
    rule: str = ""
    parts: tuple["Reason", ...] = ()
    facts: tuple[Fact, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The tree as nested objects; facts with their sources."""
        return {
            "name": self.name,
            "value": to_json(self.value),
            "rule": self.rule,
            "facts": [to_json(f) | {"cite": f.cite()} for f in self.facts],
            "parts": [p.to_json() for p in self.parts],
        }
