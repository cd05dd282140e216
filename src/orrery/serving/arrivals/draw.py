"""Arrival times by the name of their law."""

import math
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from orrery.base.errors import ScenarioError, nearest
from orrery.base.technique import Technique, discover
from orrery.engine.streams import stream
from orrery.serving.arrivals import techniques
from orrery.serving.arrivals.clock import Floats

MOST = 100_000_000
"""More requests than a run could ever hold; such a count is a slip."""


@cache
def laws() -> tuple[Technique, ...]:
    """Every law of arrival that is known, by name."""
    return tuple(t for t in discover(techniques) if t.extension_point == "serving.arrivals")


def arrivals(law: str, count: int, rate_per_s: float, seed: int = 0, **knobs: Any) -> Floats:
    """``count`` arrival times in seconds by that law at that mean rate, the first after the first gap.

    The same seed at another rate gives the same gaps, scaled. An infinite rate puts every arrival at 0.

    >>> arrivals("constant", 3, 2.0).tolist()
    [0.5, 1.0, 1.5]
    """
    technique = _law(law)
    settings = _settings(technique, knobs)
    if not 0 <= count <= MOST:
        raise ScenarioError(f"arrivals: count: got {count}; write a whole number up to {MOST:,}.")
    if not rate_per_s > 0:
        raise ScenarioError(f"arrivals: rate: got {rate_per_s:g} requests/s; write a number above 0.")
    if count == 0 or math.isinf(rate_per_s):
        return np.zeros(count)
    return technique.rule(count, rate_per_s, stream(seed, "arrivals"), settings)


def _law(name: str) -> Technique:
    known = {t.name: t for t in laws()}
    if name not in known:
        raise ScenarioError(f"arrivals: there is no law {name!r};{_hint(name, known)} write one of {', '.join(known)}.")
    return known[name]


def _settings(technique: Technique, knobs: dict[str, Any]) -> Any:
    known = [f.name for f in fields(technique.knobs)]
    for name in knobs:
        if name not in known:
            has = f"write one of {', '.join(known)}" if known else "it has none: leave it out"
            raise ScenarioError(f"arrivals: {technique.name} has no setting {name!r};{_hint(name, known)} {has}.")
    return technique.knobs(**knobs)


def _hint(name: str, known: Any) -> str:
    near = nearest(name, known)
    return f" did you mean {' or '.join(map(repr, near))}?" if near else ""
