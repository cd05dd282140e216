"""Fields of orchestrators' files as recorded, with version and source."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.sources import Fact, Source, cited, read_facts, read_toml

FILE = Path(__file__).parent / "facts" / "deploy.toml"
KNOWN = ("engine", "api", "source", "at", "fields")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of file or object: its API version, the fields that it may have, and where that stands."""

    name: str
    api: str
    fields: tuple[str, ...]
    source: Source


@cache
def deploy_facts() -> Mapping[str, Fact]:
    """Return images with their sources."""
    return read_facts(FILE)[0]


@cache
def kinds() -> Mapping[str, Kind]:
    """Return every recorded kind by name."""
    raw = read_toml(FILE)
    sources = {key: Source(**table) for key, table in raw["sources"].items()}
    rules: list[dict[str, Any]] = raw["rule"]
    return {
        rule["engine"]: Kind(
            name=rule["engine"],
            api=rule["api"],
            fields=tuple(rule["fields"]),
            source=cited(f"{FILE.name}: {rule['engine']}", rule, KNOWN, sources),
        )
        for rule in rules
    }


def kind_of(name: str) -> Kind:
    """Return the recorded kind of that name."""
    return kinds()[name]
