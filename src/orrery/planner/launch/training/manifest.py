"""Which flags and keys each training framework knows, as recorded from its source: one file a version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import orrery.catalog
from orrery.base.sources import read_toml

FOLDER = Path(orrery.catalog.__file__).parent / "facts" / "launch" / "training"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingManifest:
    """One version of one framework: flags of its command, keys of its configuration, and what it calls models."""

    framework: str
    version: str
    flags: frozenset[str]
    config_keys: frozenset[str]
    source: str
    switches: frozenset[str] = frozenset()  # flags without a word; empty = not recorded
    choices: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict[str, tuple[str, ...]]
    )  # words that a flag takes
    recipes: Mapping[str, str] = field(default_factory=dict[str, str])  # model -> stem of its recipes
    models: Mapping[str, tuple[str, str, str]] = field(  # model -> folder, function to start from, flavor
        default_factory=dict[str, tuple[str, str, str]]
    )


@cache
def training_manifests() -> dict[str, TrainingManifest]:
    """Every recorded framework by name."""
    found = [_read(path) for path in sorted(FOLDER.glob("*.toml"))]
    return {m.framework: m for m in found}


def _read(path: Path) -> TrainingManifest:
    raw = read_toml(path)
    return TrainingManifest(
        framework=raw["engine"],
        version=raw["version"],
        flags=frozenset(raw["flags"]),
        config_keys=frozenset(raw.get("config_keys", ())),
        source=raw["source"]["title"],
        switches=frozenset(raw.get("switches", ())),
        choices={k: tuple(v) for k, v in raw.get("choices", {}).items()},
        recipes=dict(raw.get("recipes", {})),
        models={k: tuple(v) for k, v in raw.get("models", {}).items()},
    )
