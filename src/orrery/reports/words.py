"""Numbers and lists as a person who does not run machines reads them."""

import math
from collections.abc import Sequence

from orrery.base.cost import Interval
from orrery.base.units import UNIT_WORDS, si, text

S_PER_DAY = 86400.0

BOUND_BY = {
    "compute": "compute",
    "memory": "memory bandwidth",
    "network": "the links between devices",
    "overhead": "launch overhead",
    "host": "the host",
    "bubble": "the pipeline's bubble",
    "drives": "the drives",
}
"""Limits of a step, as text."""

RATES = {"tokens_per_s": "tokens/s", "requests_per_s": "requests/s", "devices": "devices", "tokens": "tokens"}


def format_value(value: float | None, unit: str) -> str:
    """A value with its unit: ``$1.47``, ``52 ms``, ``82 %``; a dash for what does not exist."""
    if value is None or not math.isfinite(value):
        return "-"
    if unit == "usd":
        return _dollars(value)
    if unit == "frac":
        return si(value, unit)
    if unit in ("day", ""):
        return f"{_digits(value)}{' days' if unit else ''}"
    if unit in RATES:
        return f"{_digits(value)} {RATES[unit]}"
    if unit == "s" and abs(value) >= 2 * S_PER_DAY:
        return f"{value / S_PER_DAY:,.3g} days"
    return text(value, unit)


def _dollars(value: float) -> str:
    """Cents between one dollar and a thousand; below that three digits."""
    size = abs(value)
    return f"${value:,.0f}" if size >= 1000 else f"${value:.2f}" if size >= 1 else f"${value:.3g}"


def _digits(value: float) -> str:
    """Three significant digits, whole numbers from a thousand on, with commas."""
    return f"{value:,.0f}" if abs(value) >= 1000 or value == round(value) else f"{value:,.3g}"


def format_interval(interval: Interval | None, unit: str) -> str:
    """``47 ms to 76 ms``; empty without an interval."""
    if interval is None:
        return ""
    low, high = format_value(interval.low_80, unit), format_value(interval.high_80, unit)
    number, space, word = low.partition(" ")
    return f"{number} to {high}" if space and high.endswith(f" {word}") else f"{low} to {high}"


def sure(interval: Interval | None, unit: str) -> str:
    """The same behind its confidence, ready to follow a number: `` (80 %: 47 ms to 76 ms)``."""
    return f" (80 %: {format_interval(interval, unit)})" if interval else ""


def listed(words: Sequence[str], last: str = "and") -> str:
    """``a, b and c``."""
    *first, end = words or ("",)
    return f"{', '.join(first)} {last} {end}" if first else end


def counted(count: float, one: str) -> str:
    """``1 device``, ``2 devices``."""
    return f"{count:,.0f} {one}{'' if count == 1 else 's'}"


def changed(value: float, base: float) -> str:
    """Difference of a value from the answer's: ``12 % more``."""
    if base == 0 or not math.isfinite(value):
        return "-"
    ratio = value / base
    if ratio >= 3:
        return f"{ratio:.3g} times as much"
    if abs(ratio - 1.0) < 5e-4:
        return "the same"
    return f"{si(abs(ratio - 1.0), 'frac')} {'more' if ratio > 1 else 'less'}"


def many(count: float) -> str:
    """A large count as people say it: ``300 billion``."""
    for scale, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if count >= scale:
            return f"{count / scale:,.4g} {word}"
    return f"{count:,.0f}"


def name_and_unit(name: str) -> tuple[str, str]:
    """A fact's name without its last words, and these where they are a unit."""
    words, unit = name.split("_"), list[str]()
    while len(words) > 1 and (words[-1] in UNIT_WORDS or (words[-1] == "per" and unit)):
        unit.insert(0, words.pop())
    return ("_".join(words), "_".join(unit)) if unit and unit[0] != "per" else (name, "")


def capital(sentence: str) -> str:
    """The first letter large, the others as they are."""
    return f"{sentence[:1].upper()}{sentence[1:]}"
