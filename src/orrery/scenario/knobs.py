"""Knobs of techniques as people write them: ``policy.chunk_tokens=512``."""

import math
from collections.abc import Sequence

from orrery.scenario.amounts import amount

SEATS = ("policy", "queue", "router", "overlap", "transfer", "swap", "arrivals")
"""Settings that name a technique, whose knobs can be set."""


def read_knobs(texts: Sequence[str]) -> dict[str, dict[str, float]]:
    """Knobs by setting and name. ValueError says what to write."""
    found: dict[str, dict[str, float]] = {seat: {} for seat in SEATS}
    for word in (w for t in texts for w in t.replace(",", " ").split()):
        where, equals, number = word.partition("=")
        seat, dot, name = where.partition(".")
        typed = amount(number, name)
        try:
            value = float(number) if typed is None else typed
        except ValueError:
            value = math.nan
        if seat not in SEATS or not dot or not name or not equals or not math.isfinite(value):
            raise ValueError(f"{word!r} is no knob; write SETTING.NAME=NUMBER with one of {', '.join(SEATS)}")
        found[seat][name] = value
    return found
