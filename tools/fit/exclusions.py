"""Rows of measured tables that are reported only: ``tools/excluded.toml``."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.sources import read_toml
from orrery.evidence.row import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """Rows that are reported but neither fitted nor counted in medians: which cells they have, and why."""

    where: Mapping[str, str]  # column -> pattern, as in file names (* and ?)
    why: str

    def holds(self, row: Row) -> bool:
        """Whether every named column of a row is as the pattern says."""
        return all(fnmatchcase(row.word(column), pattern) for column, pattern in self.where.items())


def read_exclusions(path: Path) -> tuple[Exclusion, ...]:
    """The ``[[excluded]]`` tables of a file; refuses one that gives no columns or no reason."""
    found: list[Exclusion] = []
    for entry in read_toml(path).get("excluded", ()):
        if not entry.get("where") or not entry.get("why"):
            raise ScenarioError(f"{path.name}: an [[excluded]] table needs where = {{column = pattern}} and why = …")
        found.append(Exclusion(where=entry["where"], why=entry["why"]))
    return tuple(found)


def excluded(row: Row, exclusions: Sequence[Exclusion]) -> str:
    """Why a row is reported only; empty where it counts."""
    return next((e.why for e in exclusions if e.holds(row)), "")
