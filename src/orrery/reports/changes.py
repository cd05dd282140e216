"""One input changed at a time: which inputs, how far, and how far the answer goes until it flips."""

from collections.abc import Callable, Mapping
from typing import Any

from orrery.base.errors import OrreryError
from orrery.reports.report import End, Input
from orrery.reports.words import format_value

DOWN, UP = 0.8, 1.2
"""A fifth less and a fifth more: what a forecast of traffic is easily off by."""

FARTHEST_RATIO = 64.0
"""Beyond so many times an input nobody asks."""

PRECISION = 0.01
"""Relative precision of a tipping point."""

Changes = Mapping[str, Any]

Figures = Callable[[Changes], Mapping[str, float] | str]
"""The figures with some inputs set anew; or what is lacking."""


def swung(name: str, key: str, value: float, unit: str, figures: Figures) -> Input:
    """``key`` a fifth lower and higher than ``value``; whole numbers stay whole."""
    is_whole = unit in ("tokens", "", "devices")
    low, high = (max(1.0, round(value * f)) if is_whole else value * f for f in (DOWN, UP))
    return between_ends(name, key, (low, high), unit, figures)


def between_ends(name: str, key: str, ends: tuple[float, float], unit: str, figures: Figures) -> Input:
    """``key`` at both of ``ends``."""
    low, high = (end(_short(value, unit), figures, {key: value}) for value in ends)
    return Input(name=name, low=low, high=high)


def _short(value: float, unit: str) -> str:
    """Label beside a bar."""
    return f"{value:.3g}/s" if unit == "requests_per_s" else format_value(value, unit)


def end(words: str, figures: Figures, changes: Changes) -> End:
    """The figures with ``changes``; what cannot be answered says why."""
    try:
        found = figures(changes)
    except OrreryError as error:
        return End(text=words, infeasible=str(error))
    return End(text=words, infeasible=found) if isinstance(found, str) else End(text=words, values=found)


def farthest(holds: Callable[[float], bool]) -> float | None:
    """The largest ratio of an input at which the answer still holds, by bisection; None where nothing ends it.

    It holds at 1, and beyond the ratio it does not.
    """
    low, high = 1.0, 2.0
    while holds(high):
        low, high = high, 2.0 * high
        if low >= FARTHEST_RATIO:
            return None
    while high / low - 1.0 > PRECISION:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
