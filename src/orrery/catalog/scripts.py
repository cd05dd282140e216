"""What public benchmark scripts tell an engine: settings that a measured row does not state, by engine and traffic.

``facts/scripts.toml`` holds the rules, each with its source; the first that holds decides.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import inf
from pathlib import Path
from typing import Any

from orrery.base.errors import FactError
from orrery.base.sources import Basis, Fact, Source, read_toml
from orrery.catalog.releases import is_past

FILE = Path(__file__).parent / "facts" / "scripts.toml"

SETTINGS = ("scheduler_recv_interval",)
KEYS = frozenset({"engine", "mode", "from", "on", "ranks", "concurrency", "source", "at", *SETTINGS})
ANY = (0.0, inf)


@cache
def _rules() -> tuple[Mapping[str, Any], ...]:
    raw = read_toml(FILE)
    for rule in raw["rule"]:
        label = f"scripts.toml: the rule of {rule.get('engine')}"
        if unknown := rule.keys() - KEYS:
            raise FactError(f"{label}: unknown key {', '.join(sorted(unknown))}; known: {', '.join(sorted(KEYS))}.")
        if rule.get("source") not in raw["sources"] or not rule.get("at"):
            raise FactError(f"{label}: say source = … (a [sources] key) and at = … (where it stands).")
    return tuple({**rule, "source": Source(**raw["sources"][rule["source"]])} for rule in raw["rule"])


def script_setting(
    setting: str, *, engine: str, version: str, mode: str, generation: str, ranks: int, concurrency: float
) -> Fact | None:
    """What scripts write for a setting, where requests so many are in flight over so many attention ranks; None where
    they write nothing."""
    for rule in _rules():
        if (
            setting in rule and rule["engine"] == engine and rule["mode"] == mode
            and is_past(rule.get("from", "0"), version) and generation in rule.get("on", (generation,))
            and _holds(rule.get("ranks", ANY), ranks) and _holds(rule.get("concurrency", ANY), concurrency)
        ):  # fmt: skip
            return Fact(name=setting, value=rule[setting], basis=Basis.STATED, source=rule["source"], at=rule["at"])
    return None


def _holds(ends: Sequence[float], value: float) -> bool:
    least, most = ends
    return least <= value <= most
