"""Versions of engines as numbers, so that a rule knows whether a release is before or after its own."""

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
