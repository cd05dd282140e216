"""Layouts that practitioners published, with how fast they ran: ``published_layouts.toml``."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import FactError
from orrery.base.sources import Source, read_toml

FILE = Path(__file__).with_suffix(".toml")

MEASURED = (
    "tokens_per_s_per_device",
    "step_time_s",
    "model_flops_per_s_per_device",
    "hardware_flops_per_s_per_device",
)
"""Metrics that publications state; a row has at least one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedLayout:
    """One job as it was run, its layout by name, and how fast it was."""

    name: str
    title: str
    layout: str
    job: Mapping[str, Any]  # keys of a scenario file
    metric: str  # one of MEASURED
    value: float
    source: Source
    at: str


@cache
def published_layouts() -> Mapping[str, PublishedLayout]:
    """Every one by its name."""
    raw = read_toml(FILE)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    found: dict[str, PublishedLayout] = {}
    for entry in raw["layout"]:
        stated = [name for name in MEASURED if name in entry]
        if len(stated) != 1:
            raise FactError(f"{FILE.name}: {entry['name']} states {stated or 'nothing'}; write one of {MEASURED}.")
        found[entry["name"]] = PublishedLayout(
            name=entry["name"],
            title=entry["title"],
            layout=entry["layout"],
            job=entry["job"],
            metric=stated[0],
            value=float(entry[stated[0]]),
            source=sources[entry["source"]],
            at=entry["at"],
        )
    return found
