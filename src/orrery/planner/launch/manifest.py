"""Which flags each version of an engine accepts, as recorded by ``tools/record_flags.py``."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import orrery.catalog
from orrery.base.errors import UnknownName
from orrery.base.sources import read_toml

FOLDER = Path(orrery.catalog.__file__).parent / "facts" / "launch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One version of one engine: its flags, and the keys of its configuration file."""

    engine: str
    version: str
    flags: frozenset[str]
    config_keys: frozenset[str]
    source: str

    def first(self, *flags: str) -> str:
        """The first of several spellings that this version accepts; "" where it accepts none."""
        return next((f for f in flags if f in self.flags), "")


@cache
def manifests() -> tuple[Manifest, ...]:
    """Every recorded version, oldest first."""
    found = [_read(path) for path in sorted(FOLDER.glob("*.toml"))]
    return tuple(sorted(found, key=lambda m: (m.engine, _numbers(m.version))))


def manifest_for(engine: str, version: str = "") -> Manifest:
    """The newest recorded version that is not newer than ``version`` (blank = the newest); else the oldest."""
    mine = [m for m in manifests() if m.engine == engine]
    if not mine:
        raise UnknownName("engine", engine, {m.engine for m in manifests()})
    target_version = _numbers(version)
    older = [m for m in mine if not target_version or _numbers(m.version) <= target_version]
    return older[-1] if older else mine[0]


def _read(path: Path) -> Manifest:
    raw = read_toml(path)
    return Manifest(
        engine=raw["engine"],
        version=raw["version"],
        flags=frozenset(raw["flags"]),
        config_keys=frozenset(raw.get("config_keys", ())),
        source=raw["source"]["title"],
    )


def _numbers(version: str) -> tuple[int, ...]:
    """The release numbers of a version: 0.5.10.post1 -> (0, 5, 10)."""
    digits = "".join(c if c.isdigit() else " " for c in version.split("rc")[0].split("post")[0])
    return tuple(int(x) for x in digits.split()[:3])
