"""An axis: its scale, and ticks at 1, 2 or 5 times a power of ten, or at decades."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from orrery.base.units import prefix_of, si, symbol, with_prefix

MOST, LEAST = 1e150, 1e-150
"""Beyond the first a number counts as infinite, below the second as zero: their squares have no place in a float."""

_MAX_LETTERS = 5
"""Largest number of letters of a power of ten; a longer one is written with an exponent."""

_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

_ZERO_FROM = 0.4
"""Below this share of the largest value the smallest one is so near to zero that the axis begins there."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis: its name and unit, whether it is logarithmic, and its ends if given."""

    label: str
    unit: str = ""
    is_log: bool = False
    low: float | None = None
    high: float | None = None

    def takes(self, value: float) -> bool:
        """Whether the value has a place: finite, and above zero where powers are counted."""
        return math.isfinite(value) and abs(value) < MOST and (not self.is_log or value > LEAST)

    def name(self) -> str:
        """The label, with the unit where ticks do not carry it."""
        sign = symbol(self.unit)
        return self.label if not sign or _on_ticks(sign) else f"{self.label} ({sign})" if self.label else sign

    def describe(self, value: float) -> str:
        """A value as a person reads it."""
        return si(value, self.unit)


@dataclass(frozen=True, slots=True)
class Scale:
    """Values to places: linear, or linear in the logarithm."""

    axis: Axis
    low: float
    high: float
    start_px: float
    end_px: float

    def at(self, value: float) -> float:
        """Where a value is drawn."""
        share = self._share(value)
        return self.start_px + share * (self.end_px - self.start_px)

    def has(self, value: float) -> bool:
        """Whether the value lies between the ends."""
        return self.axis.takes(value) and self.low <= value <= self.high

    def _share(self, value: float) -> float:
        if self.axis.is_log:
            low, high = math.log10(self.low), math.log10(self.high)
            return (math.log10(max(value, LEAST)) - low) / (high - low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self, room_px: float) -> list[tuple[float, str]]:
        """Values and their texts, about ``room_px`` apart or more."""
        most = max(2, int(abs(self.end_px - self.start_px) / room_px))
        if self.axis.is_log:
            values = _decades(self.low, self.high, most)
            if len(values) >= 2:
                return [(v, self._text(v)) for v in values]
        values = _steps(self.low, self.high, most)
        return list(zip(values, self._texts(values), strict=True))

    def _text(self, value: float) -> str:
        """A tick of an axis of powers: each has its own prefix."""
        sign = symbol(self.axis.unit)
        unit = self.axis.unit if _on_ticks(sign) else ""
        caption = si(value, unit)
        power = math.log10(100 * value if unit == "frac" else value)
        number = caption.partition(" ")[0]
        if (len(number) <= _MAX_LETTERS and "e" not in number) or abs(power - round(power)) > 1e-9:
            return caption
        return f"10{str(round(power)).translate(_RAISED)} {sign if unit else ''}".rstrip()

    def _texts(self, values: list[float]) -> list[str]:
        """Ticks of a linear axis: all in one prefix, with as many digits as tell them apart."""
        sign = symbol(self.axis.unit)
        largest = max(map(abs, values))
        if self.axis.unit in ("frac", "ratio"):
            prefix, scale = "", 0.01 if self.axis.unit == "frac" else 1.0
        else:
            prefix, scale = prefix_of(largest, sign.partition("/")[0])
        step = min((b - a for a, b in pairwise(values)), default=largest or 1.0) / scale
        decimals = max(0, -math.floor(math.log10(step) + 1e-9))
        is_plain = largest / scale < 1e7 and decimals <= 9
        unit = with_prefix(prefix, sign) if _on_ticks(sign) else prefix
        return [
            "0" if not v else f"{v / scale:{f',.{decimals}f' if is_plain else 'g'}} {unit}".rstrip() for v in values
        ]


def _on_ticks(sign: str) -> bool:
    """Whether a unit is short enough to stand at every tick."""
    return len(sign) <= 2 or sign == "FLOP"


def scale(
    axis: Axis, values: Iterable[float], start_px: float, end_px: float, *, zero_below: float = _ZERO_FROM
) -> Scale:
    """The scale that holds the values that have a place, from the axis' own ends where it states them.

    It begins at zero where the smallest value is below the share ``zero_below`` of the largest.
    """
    inside = [v for v in values if axis.takes(v)] or [1.0]
    low, high = min(inside), max(inside)
    if axis.is_log:
        low, high = _round_powers(low, high)
    else:
        low, high = _round_ends(low, high, zero_below)
    stated_low = axis.low if axis.low is not None and axis.takes(axis.low) else None
    stated_high = axis.high if axis.high is not None and axis.takes(axis.high) else None
    low, high = low if stated_low is None else stated_low, high if stated_high is None else stated_high
    if not low < high or _is_flat(low, high):
        low, high = _round_powers(low, low) if axis.is_log else _round_ends(low, low, 0.0)
    return Scale(axis, low, high, start_px, end_px)


def _round_ends(low: float, high: float, zero_below: float) -> tuple[float, float]:
    """Ends at whole steps; from zero where that is near."""
    if 0 <= low < zero_below * high:
        low = 0.0
    if zero_below * low < high <= 0:
        high = 0.0
    size = max(abs(low), abs(high))
    if _is_flat(low, high):
        room = 0.5 * size if size >= LEAST else 1.0
        low, high = (0.0, 1.0) if size < LEAST else (low - room, high + room)
    step = _step((high - low) / 10)
    return math.floor(low / step + 1e-6) * step, math.ceil(high / step - 1e-6) * step


def _is_flat(low: float, high: float) -> bool:
    """Whether both ends are one value as far as a drawing can tell."""
    size = max(abs(low), abs(high))
    return high - low <= 1e-9 * size or size < LEAST


def _round_powers(low: float, high: float) -> tuple[float, float]:
    """A little room at both ends, more where there is but one value."""
    decades = math.log10(high) - math.log10(low)
    room = 10 ** (max(0.05 * decades, 0.02) if decades > 0.05 else 0.35)
    return max(low / room, LEAST), min(high * room, MOST)


def _step(least: float) -> float:
    """The next 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10, 20) if power * factor >= least * (1 - 1e-9))


def _steps(low: float, high: float, most: int) -> list[float]:
    step = _step((high - low) / most)
    first, last = math.ceil(low / step - 1e-6), math.floor(high / step + 1e-6)
    return [n * step for n in range(first, last + 1)]


def _decades(low: float, high: float, most: int) -> list[float]:
    """Powers of ten; 2 and 5 times them as well where there is room, only every n-th where there is not."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [f * 10.0**power for power in range(first, last + 1) for f in factors]
        values = [v for v in values if low * (1 - 1e-9) <= v <= high * (1 + 1e-9)]
        if len(values) <= most:
            return values
    every = -(-len(values) // most)
    return [v for v in values if round(math.log10(v)) % every == 0]
