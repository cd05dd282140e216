"""Versions of engines as numbers, so that a rule knows whether a release is before or after its own, and their dates.

``facts/releases.toml`` says on which day each release appeared.
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from orrery.base.sources import read_toml

FILE = Path(__file__).parent / "facts" / "releases.toml"

UNVERSIONED = "unknown"
"""The version of a run that does not say which: its constants are fitted on runs that do not say either."""


def numbers(version: str) -> tuple[int, ...]:
    """The first three numbers of a version: ``1.2.0rc2`` -> (1, 2, 0)."""
    digits = "".join(c if c.isdigit() else " " for c in version.split("rc")[0].split("post")[0])
    return tuple(int(x) for x in digits.split()[:3])


def is_past(since: str, version: str) -> bool:
    """Whether ``version`` has reached ``since``; a blank version is the newest, an unknown one the oldest that is."""
    return not version or (version != UNVERSIONED and numbers(version) >= numbers(since)) or since == "0"


def is_before(until: str, version: str) -> bool:
    """Whether ``version`` is older than ``until``; a blank ``until`` never comes, a blank version is the newest."""
    if not until:
        return True
    return bool(version) and (version == UNVERSIONED or numbers(version) < numbers(until))


@cache
def _released(engine: str) -> Mapping[str, str]:
    """The day of each release (ISO); empty where nobody wrote them down."""
    tables = [entry["released"] for entry in read_toml(FILE)["engine"] if entry["engine"] == engine]
    return tables[0] if tables else {}


@cache
def newest_at(engine: str, date: str = "") -> str:
    """The newest release by a day (ISO, as far as it goes: of a bare month, by its first day), or of all where none is
    said; "" where no date of the engine's releases is known. Of two lines kept up at once the higher version counts."""
    out = [version for version, day in _released(engine).items() if not date or day <= date]
    return max(out, key=lambda version: (numbers(version), "rc" not in version), default="")


def release_day(engine: str, version: str) -> str:
    """The day of a release; "" where it is not known."""
    return _released(engine).get(version, "")
