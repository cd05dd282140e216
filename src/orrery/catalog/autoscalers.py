"""Defaults of autoscalers as their projects document them."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from orrery.base.sources import Fact, read_facts

FILE = Path(__file__).parent / "facts" / "autoscalers.toml"


@cache
def autoscaler_facts() -> Mapping[str, Fact]:
    """Return every default with its source, by the autoscaler's name and its knob: ``hpa_down_window_s``."""
    return read_facts(FILE)[0]


def facts_of(autoscaler: str) -> tuple[Fact, ...]:
    """Return the facts behind the knobs of one autoscaler."""
    start = autoscaler.replace("-", "_") + "_"
    return tuple(fact for name, fact in autoscaler_facts().items() if name.removeprefix("num_").startswith(start))


def spot_notice_s() -> float:
    """Return the warning before a spot replica is taken away."""
    return float(autoscaler_facts()["spot_notice_s"].value)
