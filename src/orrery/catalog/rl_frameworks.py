"""RL frameworks by name: what their rollouts and hand-overs cost, and what a release of one brings.

``facts/rl/<name>.toml`` holds the facts; ``like`` names the framework whose facts hold where a file says nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from orrery.base.errors import FactError
from orrery.base.sources import Fact, Source, parse_fact
from orrery.catalog.named_files import file_called, file_names, read_file
from orrery.rl.framework import RlFramework

FOLDER = Path(__file__).parent / "facts" / "rl"

DEFAULT_RL_FRAMEWORK = "nemo-rl"
"""The one whose steps were measured and published."""


def rl_framework_names() -> tuple[str, ...]:
    """Every RL framework with a fact file."""
    return file_names(FOLDER)


@cache
def get_rl_framework(name: str = "") -> RlFramework:
    """The RL framework called ``name``."""
    found = file_called(FOLDER, "RL framework", name or DEFAULT_RL_FRAMEWORK)
    facts = _facts(found)
    if unknown := facts.keys() - {f.name for f in fields(RlFramework)}:
        raise FactError(f"{found}.toml: RlFramework has no {', '.join(sorted(unknown))}.")
    values: dict[str, Any] = {key: fact.value for key, fact in facts.items()}
    try:
        return RlFramework(name=found, facts=facts, **values)
    except TypeError as error:
        raise FactError(f"{found}.toml: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Features of a release."""

    engine_version: str = ""  # "" = the newest known
    updates_in_flight: bool = True  # its asynchronous recipes hand weights over while sequences are being written


def release_of(name: str, release: str) -> Release:
    """Features of a release; one that is not stated is taken to be the newest."""
    found = file_called(FOLDER, "RL framework", name or DEFAULT_RL_FRAMEWORK)
    raw, best = read_file(FOLDER, found), Release()
    for entry in raw.get("release", ()):
        if release and _number(entry["since"]) <= _number(release):
            facts = _parsed(found, {k: v for k, v in entry.items() if k != "since"}, raw)
            best = Release(**{key: fact.value for key, fact in facts.items()})  # pyright: ignore[reportArgumentType]
    return best


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split(".") if part.isdigit())


def _facts(name: str) -> Mapping[str, Fact]:
    raw = read_file(FOLDER, name)
    return {**(_facts(raw["like"]) if "like" in raw else {}), **_parsed(name, raw.get("facts", {}), raw)}


def _parsed(name: str, entries: Mapping[str, Any], raw: Mapping[str, Any]) -> Mapping[str, Fact]:
    sources = {key: Source(**table) for key, table in raw.get("sources", {}).items()}
    return {key: parse_fact(f"{name}.toml", key, entry, sources) for key, entry in entries.items()}
