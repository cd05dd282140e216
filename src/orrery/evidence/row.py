"""One row of a measured table: its cells as words and numbers, and the defaults that its blanks took."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite

from orrery.base.errors import ScenarioError
from orrery.evidence.metrics import likest

Cells = Mapping[str, str]


@dataclass(slots=True)
class Row:
    """The cells of one row, and the defaults that its blanks took."""

    cells: Cells
    assumed: list[str] = field(default_factory=list[str])

    def word(self, column: str) -> str:
        """A cell as text; empty where it is blank or there is no such column."""
        return self.cells.get(column, "")

    def is_set(self, column: str) -> bool:
        """Whether a switch is written as on; a blank is off."""
        return self.word(column).casefold() in ("yes", "true", "1")

    def count(self, column: str) -> int:
        """A cell as a whole number; 0 where it is blank."""
        return round(self.number(column))

    def number(self, column: str) -> float:
        """A cell as a number; 0 where it is blank. Negative ones are refused."""
        if not (text := self.word(column)):
            return 0.0
        try:
            value = float(text)
        except ValueError:
            raise ScenarioError(f"{column} is not a number") from None
        if value < 0:
            raise ScenarioError(f"{column} is negative")
        if not isfinite(value):
            raise ScenarioError(f"{column} is not a finite number")
        return value

    def needed(self, column: str) -> float:
        """A cell that must be a number above zero."""
        if not self.word(column):
            near = "" if column in self.cells else likest(column, self.cells)
            raise ScenarioError(f"{column} is blank" + (f"; the nearest column is {near!r}" if near else ""))
        if (value := self.number(column)) <= 0:
            raise ScenarioError(f"{column} is zero")
        return value

    def default(self, column: str, value: str) -> str:
        """Take ``value`` for a blank, and remember it once."""
        if (note := f"{column}: {value}") not in self.assumed:
            self.assumed.append(note)
        return value
