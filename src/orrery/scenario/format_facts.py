"""Range and edge cases of an element format, computed from the codec."""

from dataclasses import dataclass
from importlib import import_module
from math import floor, inf, log2, log10, nan
from typing import Any

import numpy as np

from orrery.base.errors import OrreryError
from orrery.numerics.codec.rounding import round_to
from orrery.numerics.element import MAX_TABULATED_BITS, Element, Ladder
from orrery.numerics.families.minifloat import Minifloat
from orrery.numerics.format import Format
from orrery.numerics.names import named_elements, source_of_named
from orrery.numerics.quantise import round_trip
from orrery.numerics.scaling import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementFacts:
    """One element format in numbers; None where a word means nothing for it."""

    name: str
    element_bits: float
    highest: float
    lowest: float
    smallest_normal: float | None  # with the whole mantissa; floats alone
    smallest: float  # above zero
    range_decades: float  # from the smallest to the largest
    num_values: int  # finite ones; minus zero is zero
    source: str


def facts_of(element: Element) -> ElementFacts:
    """The facts of an element."""
    smallest = smallest_of(element)
    return ElementFacts(
        name=element.name,
        element_bits=element.bits,
        highest=element.highest,
        lowest=lowest_of(element),
        smallest_normal=2.0**element.min_exponent if isinstance(element, Minifloat) else None,
        smallest=smallest,
        range_decades=log10(element.highest) - log10(smallest),
        num_values=num_values_of(element),
        source=source_of(element),
    )


def lowest_of(element: Element) -> float:
    """The number farthest below zero, or the smallest one."""
    layout = element.layout
    return layout.lowest if isinstance(layout, Ladder) else float(layout.values[0])


def smallest_of(element: Element) -> float:
    """The smallest number above zero."""
    layout = element.layout
    if isinstance(layout, Ladder):
        return 2.0**layout.sub_exponent
    return float(layout.values[layout.values > 0][0])


def num_values_of(element: Element) -> int:
    """Finite values: counted binade by binade on a ladder, so that 32 bits need no table."""
    layout = element.layout
    if not isinstance(layout, Ladder):
        return len(layout.values)
    if not isinstance(element, Minifloat):  # equal steps
        return int((layout.highest - layout.lowest) / 2.0**layout.sub_exponent) + 1
    per_binade, top = 1 << layout.mantissa_bits, floor(log2(layout.highest))
    normal = (top - layout.min_exponent) * per_binade + int((layout.highest / 2.0**top - 1.0) * per_binade) + 1
    above = normal + (1 << (layout.min_exponent - layout.sub_exponent)) - 1
    return 2 * above + 1 if element.is_signed else above + element.has_zero


def source_of(element: Element) -> str:
    """Source that defines the element: that of its file, or the first line of its family's module."""
    if element.name in named_elements():
        return source_of_named(element.name)
    return (import_module(type(element).__module__).__doc__ or "").strip().splitlines()[0]


def table_of(element: Element) -> list[float]:
    """The value of every code; empty where there are more than 256."""
    return element.values().tolist() if element.bits <= 8 else []


# ---- what happens at the edges


def edges_of(format: Format, element: Element) -> dict[str, str]:
    """Encoding of numbers beyond the largest, of NaN, infinity, zeros and short blocks."""
    beyond = element.highest * 1.5 if element.highest < 1e38 else inf
    found = {
        f"unscaled {_word(beyond)}": _became(element, beyond),
        "unscaled infinity": _became(element, inf),
        "unscaled NaN": _became(element, nan),
        "unscaled half of the smallest": _became(element, smallest_of(element) / 2.0),
        "unscaled minus zero": _became(element, -0.0),
    }
    if format.scaling.levels:
        found |= {
            "a group of zeros": _group(format, 0.0, 0.0),
            "a group with NaN": _group(format, nan, 1.0),
            "a group with infinity": _group(format, inf, 1.0),
        }
    if any(level.num_elements > 1 for level in format.scaling.levels):
        found["the last group of a row"] = "may be short: it has a scale of its own, and nothing is padded"
    return found


def _became(element: Element, value: float) -> str:
    """As scaled formats and accelerators round it, and as it is without saturation where that differs."""
    words: list[str] = []
    for saturates in (True, False):
        try:
            words.append(_word(float(round_to(np.array([value]), element, saturates=saturates)[0])))
        except OrreryError:
            words.append("an error")
    saturated, plain = words
    return saturated if saturated == plain else f"{saturated} (saturated; else {plain})"


def _group(format: Format, first: float, second: float) -> str:
    """One odd number among others in a group, stored and read back."""
    share = format.scaling.levels[0].share
    rows, columns = share if isinstance(share, tuple) else (1, 8)
    x = np.full((rows, columns), second, dtype=np.float32)
    x[0, 0] = first
    try:
        with np.errstate(all="ignore"):
            back = round_trip(x, format)
    except OrreryError as error:
        return f"an error: {error}"
    if np.isnan(back).all():
        return "all of it becomes NaN"
    return "zeros" if not back.any() else f"{_word(float(back[0, 0]))} and {_word(float(back[-1, -1]))}"


def _word(value: float) -> str:
    if np.isnan(value):
        return "NaN"
    return f"{value:g}".replace("inf", "infinity") if value or not np.signbit(value) else "-0"


# ---- scales in words


RULES = {
    "amax": "the group's largest magnitude lands on the largest value",
    "floor": "a power of two, 2^(floor(log2 amax) - exponent of the largest value): the largest may saturate",
    "ceil": "the smallest power of two that saturates nothing",
    "extreme": "the number farthest from zero, with its sign, lands on the lowest value",
}
ZEROS = {"": "", "integer": "; a whole number of steps is added", "minimum": "; the group's smallest value is added"}


def scales_of(format: Format) -> list[str]:
    """One line a level, and the rule."""
    scaling = format.scaling
    if not scaling.levels:
        return ["none: numbers stand as they are"]
    lines = [_level(level) for level in scaling.levels]
    return [*lines, RULES[scaling.rule] + ZEROS[scaling.zero_point]]


def _level(level: Level) -> str:
    scale = level.scale.name if level.scale else "fp32"
    if level.share == "tensor":
        return f"one {scale} scale a tensor"
    if level.share == "row":
        return f"one {scale} scale a row (a channel of weights, a token of activations)"
    rows, columns = level.share
    where = f"{columns} in a row" if rows == 1 else f"a block of {rows} x {columns}"
    return f"one {scale} scale for {where}"


def error_curve(element: Element, num_binades: int, points: int) -> list[tuple[float, float]]:
    """(binades below the largest value, largest relative error nearby), unscaled: what a group's numbers lose."""
    curve: list[tuple[float, float]] = []
    for i in range(points):
        below = np.linspace(num_binades * i / points, num_binades * (i + 1) / points, 33)
        x = element.highest * 2.0**-below
        curve.append((float(below[16]), float(np.max(np.abs(round_to(x, element) - x) / x))))
    return curve


def plain_facts(format: Format) -> dict[str, Any]:
    """Properties of a format as a machine sees it."""
    return {
        "name": format.name,
        "title": format.title,
        "kind": format.kind,
        "bits_per_element": format.bits_per_element,
        "bytes_per_element": format.bytes_per_element,
        "scale_bits_per_element": format.scaling.bits_per_element,
        "block_elements": format.block_elements,
        "rates": format.rates,
        "is_weight_only": format.weight_only,
        "aliases": format.aliases,
        "source": format.source,
        "has_table": format.element is not None and format.element.bits <= MAX_TABULATED_BITS,
    }
