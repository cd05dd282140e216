"""Measured over predicted of published runs that no constant was fitted to, by kind of workload."""

from functools import cache
from pathlib import Path

from orrery.base.cost import Spread
from orrery.base.sources import read_toml

FILE = Path(__file__).parent / "facts" / "workload_spreads.toml"


@cache
def published_spread(kind: str) -> Spread:
    """Return the spread of a kind's latency."""
    found = read_toml(FILE)[kind]
    return Spread(
        **{f"{k}_ratio": found[k] for k in ("low_80", "high_80", "low_95", "high_95")}, because=found["because"]
    )
