"""Which campaign a measured serving run belongs to: one source's runs in one setting.

Rows of a campaign share what no model of a device knows: who measured, with which script, on which machines. So a
prediction is only tested by a campaign whose rows had no part in its constants. A column ``campaign`` names it; without
one it is

    who published (``source`` up to its commit, path or remark), how the load is made (``mode``, and whether prompts and
    outputs have workers of their own), the engine, the release that last changed its defaults, and the generation of
    the device

so one source's runs of another engine, of an engine that has changed since, or on another generation are another
campaign; another model or another page of the same source is not.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from orrery.base.errors import ScenarioError
from orrery.base.sources import read_toml
from orrery.catalog.devices import get_device
from orrery.catalog.engines import era_of
from orrery.evidence.row import Row
from orrery.evidence.serving_row import engine_of, has_pools, version_of

COLUMN = "campaign"
POOLS = "separate pools"
UNKNOWN_SOURCE = "unknown source"


def campaign_of(row: Row) -> str:
    """The campaign's name: the column's word, else what the row says of source, load, engine and device."""
    if stated := row.word(COLUMN):
        return stated
    quiet = Row(cells=row.cells)  # what is assumed here is not assumed of the prediction
    engine = engine_of(quiet)
    load = f"{row.word('mode')}, {POOLS}" if has_pools(row) else row.word("mode")
    era = era_of(engine, version_of(quiet, engine))
    generation = get_device(row.word("device")).generation
    return f"{source_of(row.word('source'))}: {load}, {engine} {era}, {generation}"


def source_of(words: str) -> str:
    """The publisher: ``NVIDIA/TensorRT-LLM@258c:docs/perf.md`` and ``NVIDIA/TensorRT-LLM (page)`` are one source."""
    return re.split(r"[@:(]", words, maxsplit=1)[0].strip() or UNKNOWN_SOURCE


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
